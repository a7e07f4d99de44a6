-- All tables of the first version. Times are UTC milliseconds; ids are text.
-- States carry CHECK constraints, invariants are partial unique indexes.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE owners (
    id      TEXT PRIMARY KEY,
    label   TEXT NOT NULL UNIQUE,          -- the owner's one scope label
    created INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE machines (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE scopes (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,  -- names the scope's own search index
    path    TEXT NOT NULL UNIQUE,
    kind    TEXT NOT NULL CHECK (kind IN ('personal', 'core', 'project', 'team')),
    owner   TEXT NOT NULL REFERENCES owners (id),
    created INTEGER NOT NULL
);

CREATE TABLE scope_members (
    scope    TEXT NOT NULL REFERENCES scopes (path) ON UPDATE CASCADE,
    owner    TEXT NOT NULL REFERENCES owners (id),
    role     TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    granted  INTEGER NOT NULL,
    accepted INTEGER,
    PRIMARY KEY (scope, owner)
) WITHOUT ROWID;

CREATE TABLE projects (
    id          TEXT NOT NULL,
    owner       TEXT NOT NULL REFERENCES owners (id),
    scope       TEXT NOT NULL REFERENCES scopes (path) ON UPDATE CASCADE,
    name        TEXT NOT NULL,
    name_key    TEXT NOT NULL,             -- the name as it is compared
    description TEXT NOT NULL DEFAULT '',
    path        TEXT,
    harness     TEXT,
    listed      INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1)),
    protected   INTEGER NOT NULL DEFAULT 0 CHECK (protected IN (0, 1)),
    retired     INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX projects_name ON projects (owner, name_key);
CREATE UNIQUE INDEX projects_scope ON projects (owner, scope);

CREATE TABLE aliases (
    owner     TEXT NOT NULL,
    alias_key TEXT NOT NULL,
    alias     TEXT NOT NULL,
    project   TEXT NOT NULL,
    PRIMARY KEY (owner, alias_key),
    FOREIGN KEY (owner, project) REFERENCES projects (owner, id)
) WITHOUT ROWID;

CREATE TABLE bindings (
    owner   TEXT NOT NULL REFERENCES owners (id),
    kind    TEXT NOT NULL CHECK (kind IN ('remote', 'path')),
    key     TEXT NOT NULL,
    scope   TEXT NOT NULL REFERENCES scopes (path) ON UPDATE CASCADE,
    created INTEGER NOT NULL,
    PRIMARY KEY (owner, kind, key)
) WITHOUT ROWID;

CREATE TABLE conversations (
    id      TEXT NOT NULL,
    owner   TEXT NOT NULL REFERENCES owners (id),
    created INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;

CREATE TABLE inertia (
    owner        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    project      TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (owner, conversation)
) WITHOUT ROWID;

CREATE TABLE drafts (
    owner        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    text         TEXT NOT NULL,
    target       TEXT,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (owner, conversation)
) WITHOUT ROWID;

CREATE TABLE messages (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    owner        TEXT NOT NULL REFERENCES owners (id),
    conversation TEXT NOT NULL,
    parent       TEXT REFERENCES messages (id),
    event_id     TEXT,
    platform     TEXT NOT NULL DEFAULT '',
    platform_id  TEXT,
    text         TEXT NOT NULL,            -- as it is sent
    typed        TEXT,                     -- as it was typed, where addressing marks were taken out
    masked       INTEGER NOT NULL DEFAULT 0 CHECK (masked IN (0, 1)),
    raw          INTEGER NOT NULL DEFAULT 0 CHECK (raw IN (0, 1)),
    created      INTEGER NOT NULL
);
CREATE UNIQUE INDEX messages_event ON messages (owner, event_id) WHERE event_id IS NOT NULL;
CREATE UNIQUE INDEX messages_platform ON messages (owner, platform, platform_id)
    WHERE platform_id IS NOT NULL;
CREATE INDEX messages_conversation ON messages (owner, conversation, seq);

CREATE TABLE decisions (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    owner       TEXT NOT NULL REFERENCES owners (id),
    message     TEXT NOT NULL REFERENCES messages (id),
    mode        TEXT NOT NULL CHECK (mode IN ('delegated', 'service')),
    state       TEXT NOT NULL CHECK (state IN
                    ('WAITING_CONFIRMATION', 'TENTATIVE', 'COMMITTED', 'CORRECTED', 'WITHDRAWN')),
    project     TEXT,
    lane        TEXT NOT NULL DEFAULT '',
    referenced  TEXT NOT NULL DEFAULT '[]',       -- JSON list of project ids
    previous    TEXT REFERENCES decisions (id),   -- the decision that this one corrects
    deadline    INTEGER,                          -- end of the isolation window; NULL: not started, or held
    held        INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
    commit_now  INTEGER NOT NULL DEFAULT 0 CHECK (commit_now IN (0, 1)),
    explanation TEXT NOT NULL,                    -- JSON, isola_core.model.Attribution
    weak_label  INTEGER NOT NULL DEFAULT 0 CHECK (weak_label IN (0, 1)),
    learned     INTEGER NOT NULL DEFAULT 0 CHECK (learned IN (0, 1)),
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    CHECK (project IS NOT NULL OR state IN ('WAITING_CONFIRMATION', 'WITHDRAWN'))
);
CREATE UNIQUE INDEX decisions_active ON decisions (message)
    WHERE state IN ('WAITING_CONFIRMATION', 'TENTATIVE', 'COMMITTED');
CREATE INDEX decisions_message ON decisions (message);
CREATE INDEX decisions_open ON decisions (owner, state, deadline)
    WHERE state IN ('WAITING_CONFIRMATION', 'TENTATIVE');
CREATE INDEX decisions_unlearned ON decisions (owner, seq)
    WHERE state = 'COMMITTED' AND learned = 0 AND weak_label = 0;
CREATE INDEX decisions_previous ON decisions (previous) WHERE previous IS NOT NULL;
CREATE INDEX decisions_project ON decisions (owner, project, seq);

CREATE TABLE sessions (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL REFERENCES owners (id),
    machine    TEXT NOT NULL REFERENCES machines (id),
    project    TEXT NOT NULL,
    lane       TEXT NOT NULL DEFAULT '',
    generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
    backend_id TEXT,
    account    TEXT NOT NULL DEFAULT '',
    cwd        TEXT,
    harness    TEXT NOT NULL,
    briefing   TEXT NOT NULL DEFAULT '',          -- what a fresh generation must still be told
    created    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    UNIQUE (owner, machine, project, lane),
    FOREIGN KEY (owner, project) REFERENCES projects (owner, id)
) WITHOUT ROWID;

CREATE TABLE leases (
    session   TEXT PRIMARY KEY REFERENCES sessions (id),
    machine   TEXT NOT NULL,
    boot      TEXT NOT NULL,
    pid       INTEGER NOT NULL,
    started   INTEGER NOT NULL,
    heartbeat INTEGER NOT NULL,
    fence     INTEGER NOT NULL,
    released  INTEGER NOT NULL DEFAULT 0 CHECK (released IN (0, 1))
) WITHOUT ROWID;

CREATE TABLE deliveries (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    decision   TEXT NOT NULL REFERENCES decisions (id),
    session    TEXT NOT NULL REFERENCES sessions (id),
    attempt    INTEGER NOT NULL CHECK (attempt >= 1),
    state      TEXT NOT NULL CHECK (state IN
                   ('PENDING', 'RUNNING', 'WRITTEN', 'RECEIVED', 'ANSWERED',
                    'FAILED', 'CANCELLED', 'UNKNOWN')),
    generation INTEGER,                           -- of the session, when it was written
    sent_hash  TEXT,
    proof      TEXT,
    error      TEXT NOT NULL DEFAULT '',
    failure    TEXT,
    fence      INTEGER,
    interrupt  INTEGER NOT NULL DEFAULT 0 CHECK (interrupt IN (0, 1)),
    urgent     INTEGER NOT NULL DEFAULT 0 CHECK (urgent IN (0, 1)),   -- goes before what waits
    written    INTEGER,                           -- time; set once the text may be in the session
    created    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    UNIQUE (decision, attempt)
);
CREATE UNIQUE INDEX deliveries_live ON deliveries (session)
    WHERE state IN ('RUNNING', 'WRITTEN', 'RECEIVED');
CREATE INDEX deliveries_open ON deliveries (session, seq)
    WHERE state IN ('PENDING', 'RUNNING', 'WRITTEN', 'RECEIVED', 'UNKNOWN');

CREATE TABLE turns (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery   TEXT NOT NULL UNIQUE REFERENCES deliveries (id),
    session    TEXT NOT NULL REFERENCES sessions (id),
    generation INTEGER NOT NULL,
    turn_id    TEXT NOT NULL DEFAULT '',
    reply      TEXT NOT NULL,
    context    TEXT NOT NULL DEFAULT '',          -- JSON, the quoted context that went in with it
    meta       TEXT NOT NULL DEFAULT '{}',
    excised    INTEGER NOT NULL DEFAULT 0 CHECK (excised IN (0, 1)),
    started    INTEGER NOT NULL,
    ended      INTEGER NOT NULL
);
CREATE INDEX turns_session ON turns (session, generation, seq);

CREATE TABLE rewinds (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    decision TEXT NOT NULL REFERENCES decisions (id),
    session  TEXT NOT NULL REFERENCES sessions (id),
    delivery TEXT NOT NULL REFERENCES deliveries (id),
    state    TEXT NOT NULL CHECK (state IN ('PENDING', 'DONE', 'REPLACED')),
    note     TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0,
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    UNIQUE (delivery, session)                    -- another session may have quoted it
);
CREATE INDEX rewinds_open ON rewinds (session) WHERE state = 'PENDING';
CREATE INDEX rewinds_decision ON rewinds (decision);

CREATE TABLE write_tasks (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    decision TEXT NOT NULL REFERENCES decisions (id),
    ordinal  INTEGER NOT NULL CHECK (ordinal >= 0),
    text     TEXT,                                -- NULL: the message's own text
    kind     TEXT,
    state    TEXT NOT NULL CHECK (state IN ('PENDING', 'RUNNING', 'DONE', 'CANCELLED', 'FAILED')),
    attempts INTEGER NOT NULL DEFAULT 0,
    result   TEXT NOT NULL DEFAULT '',            -- written, duplicate, or the gate that refused
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    UNIQUE (decision, ordinal)
);
CREATE INDEX write_tasks_open ON write_tasks (state, updated) WHERE state IN ('PENDING', 'RUNNING');

CREATE TABLE memories (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    scope         TEXT NOT NULL REFERENCES scopes (path) ON UPDATE CASCADE,
    owner         TEXT NOT NULL REFERENCES owners (id),
    visibility    TEXT NOT NULL DEFAULT 'private' CHECK (visibility IN ('private', 'shared')),
    kind          TEXT NOT NULL CHECK (kind IN
                      ('fact', 'decision', 'constraint', 'preference', 'convention', 'gotcha',
                       'reference', 'episode', 'task', 'open-question')),
    durability    TEXT NOT NULL CHECK (durability IN ('durable', 'history')),
    content       TEXT NOT NULL,
    hash          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('ACTIVE', 'RETIRED')),
    superseded_by TEXT REFERENCES memories (id),
    conversation  TEXT NOT NULL DEFAULT '',
    author        TEXT NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL
);
CREATE UNIQUE INDEX memories_content ON memories (owner, scope, hash) WHERE state = 'ACTIVE';
CREATE INDEX memories_scope ON memories (scope, state, seq);

CREATE TABLE memory_sources (
    memory   TEXT NOT NULL REFERENCES memories (id),
    decision TEXT NOT NULL REFERENCES decisions (id),
    live     INTEGER NOT NULL DEFAULT 1 CHECK (live IN (0, 1)),
    created  INTEGER NOT NULL,
    PRIMARY KEY (memory, decision)
) WITHOUT ROWID;
CREATE INDEX memory_sources_decision ON memory_sources (decision);

CREATE TABLE memory_history (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    memory TEXT NOT NULL REFERENCES memories (id),
    event  TEXT NOT NULL,
    state  TEXT NOT NULL,
    reason TEXT NOT NULL,
    at     INTEGER NOT NULL
);
CREATE INDEX memory_history_memory ON memory_history (memory, seq);

CREATE TABLE threads (
    token        TEXT PRIMARY KEY,
    owner        TEXT NOT NULL REFERENCES owners (id),
    conversation TEXT NOT NULL,
    scope        TEXT NOT NULL REFERENCES scopes (path) ON UPDATE CASCADE,
    seen         INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    UNIQUE (owner, conversation)
) WITHOUT ROWID;

CREATE TABLE judge_state (
    owner   TEXT NOT NULL,
    project TEXT NOT NULL,
    version INTEGER NOT NULL,
    blob    BLOB NOT NULL,                        -- packed word counts
    PRIMARY KEY (owner, project)
) WITHOUT ROWID;

CREATE TABLE changes (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id   TEXT NOT NULL,
    at   INTEGER NOT NULL
);

CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    owner   TEXT NOT NULL,
    actor   TEXT NOT NULL,
    command TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload TEXT NOT NULL DEFAULT '{}',           -- sanitised, never message text
    outcome TEXT NOT NULL,
    at      INTEGER NOT NULL
);
CREATE INDEX audit_subject ON audit (subject);
