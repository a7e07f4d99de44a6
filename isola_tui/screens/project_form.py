"""Registering a project: its name, a sentence about it, and the folder it lives in."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from isola_core.errors import IsolaError
from isola_core.model import Project
from isola_core.projects import NewProject, Projects
from isola_tui.lines import plain
from isola_tui.presentation import Presentation

FIELDS = ("name", "description", "folder")


class ProjectForm(ModalScreen[Project | None]):
    """Ends with the registered project, or None. What is refused stays to be changed."""

    CSS_PATH = "modal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="form_back"),
        Binding("ctrl+j", "save", "Register", id="form_save"),
        Binding("up", "app.focus_previous", "Field before", id="form_up"),
        Binding("down", "app.focus_next", "Next field", id="form_down"),
    ]

    def __init__(self, projects: Projects, presentation: Presentation) -> None:
        super().__init__()
        self._projects = projects
        self._presentation = presentation

    def compose(self) -> ComposeResult:
        """Three fields."""
        texts = self._presentation.texts
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(texts("project_form.title"))
            dialog.border_subtitle = Content(texts("project_form.keys"))
            for each in FIELDS:
                yield Static(Content(texts(f"project_form.{each}")), classes="label", markup=False)
                yield Input(id=each, placeholder=texts(f"project_form.{each}_hint"))
            yield Static(classes="refused", markup=False)

    def on_mount(self) -> None:
        """Begin with the name."""
        self.query_one("#name", Input).focus()

    @on(Input.Submitted)
    async def _next(self, event: Input.Submitted) -> None:
        if event.input.id == FIELDS[-1]:
            await self.action_save()
        else:
            self.focus_next()

    async def action_save(self) -> None:
        """Register it, or say why not."""
        name, description, folder = (self.query_one(f"#{each}", Input).value for each in FIELDS)
        path = Path(folder.strip()) if folder.strip() else None
        try:
            project = await self._projects.add(NewProject(name, description, path=path))
        except IsolaError as error:
            refused = self.query_one(".refused", Static)
            refused.update(Content(plain(error.message)))
            refused.display = True
            return
        self.dismiss(project)
