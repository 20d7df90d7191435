"""One self-contained HTML page that shows a plan, a game, or two plans side by side.

It needs no network and no server.

    from mallocgame import viewer
    viewer.write_page("page.html", mg.load_log("game.mgr"), program, against=program.xla_plan)
"""

from mallocgame.viewer.page import make_page, write_page

__all__ = ["make_page", "write_page"]
