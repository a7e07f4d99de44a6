"""Projects and contexts that the attribution tests share."""

from __future__ import annotations

from collections.abc import Mapping

from isola_core.attribution.router import RoutingContext, WordCounts
from isola_core.model import Project


def project(
    id_: str,
    name: str = "",
    description: str = "",
    *aliases: str,
    protected: bool = False,
    listed: bool = True,
) -> Project:
    return Project(
        id=id_,
        name=name or id_,
        scope=f"user.{id_}",
        description=description,
        aliases=aliases,
        protected=protected,
        listed=listed,
    )


BILLING = project("p1", "billing", "Invoices, refunds and the payment provider", "计费", "bill")
SEARCH = project("p2", "search", "Index, ranking and queries of the shop", "搜索服务")
DOCS = project("p3", "docs", "The handbook and its static site")
PORTAL = project("p4", "My Portal", "Customer area, login, profile pages", "portal-web")
TRADER = project("p5", "交易系统", "撮合、行情、风控", "trader")
ALL = (BILLING, SEARCH, DOCS, PORTAL, TRADER)


def said(*texts: str) -> WordCounts:
    counts = WordCounts()
    counts.add_all(texts)
    return counts


def context(
    current: Project | None = None,
    *,
    projects: tuple[Project, ...] = ALL,
    asking: tuple[Project, ...] = (),
    visible: Project | None = None,
    counts: Mapping[str, WordCounts] | None = None,
    recent: tuple[tuple[str, str], ...] = (),
    auto_at: float = 0.95,
) -> RoutingContext:
    return RoutingContext(
        projects=projects,
        current=current.id if current else None,
        recent=recent,
        counts=counts or {},
        asking=tuple(each.id for each in asking),
        visible=visible.id if visible else None,
        auto_at=auto_at,
    )
