"""The configuration: `config.yaml`, typed, and every problem of it named at once.

The file is optional. What it may hold is in `settings`, how YAML is read within bounds in
`document`, how it is checked in `reading`, and how `isola init` writes it in `writing`.
"""

from __future__ import annotations

from isola_core.config.reading import load_config
from isola_core.config.settings import (
    DEFAULT_HARNESS,
    CliJudgeConfig,
    Config,
    HarnessConfig,
    JudgeConfig,
    LocalJudgeConfig,
    ManualJudgeConfig,
    OpenAICompatJudgeConfig,
    ProjectConfig,
    StoreConfig,
)
from isola_core.config.writing import dump_config, write_config

__all__ = [
    "DEFAULT_HARNESS",
    "CliJudgeConfig",
    "Config",
    "HarnessConfig",
    "JudgeConfig",
    "LocalJudgeConfig",
    "ManualJudgeConfig",
    "OpenAICompatJudgeConfig",
    "ProjectConfig",
    "StoreConfig",
    "dump_config",
    "load_config",
    "write_config",
]
