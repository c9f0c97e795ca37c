"""The page `/docs`: the OpenAPI document for people. All that it loads comes from this server."""

from importlib.resources import as_file, files

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse

router = APIRouter(prefix="/docs", include_in_schema=False)
_DAY = {"Cache-Control": "public, max-age=86400"}
_NO_ICON = "data:,"


@router.get("")
async def page(request: Request) -> HTMLResponse:
    """Swagger UI."""
    root = str(request.scope.get("root_path", "")).rstrip("/")
    return get_swagger_ui_html(
        openapi_url=f"{root}/openapi.json",
        title="Memplane",
        swagger_js_url=f"{root}/docs/swagger-ui-bundle.js",
        swagger_css_url=f"{root}/docs/swagger-ui.css",
        swagger_favicon_url=_NO_ICON,
    )


@router.get("/swagger-ui-bundle.js")
async def script() -> FileResponse:
    """The script of the page."""
    return _file("swagger-ui-bundle.js")


@router.get("/swagger-ui.css")
async def style() -> FileResponse:
    """The style of the page."""
    return _file("swagger-ui.css")


def _file(name: str) -> FileResponse:
    with as_file(files("fastapi_offline") / "static" / name) as path:
        return FileResponse(path, headers=_DAY)
