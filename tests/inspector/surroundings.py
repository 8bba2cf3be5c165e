"""The page that JupyterLab puts around an output: its rules for tables, light and dark."""

from __future__ import annotations

# What JupyterLab 4 says about rendered HTML and tables (rendermime's base.css and the themes'
# variables.css), as far as it touches an output.
_STYLE = """
:root {
  --jp-content-font-family: Inter, system-ui, -apple-system, "Segoe UI", Helvetica, Arial,
    sans-serif;
  --jp-content-font-size1: 14px; --jp-ui-font-size1: 13px;
}
body[data-jp-theme-light="true"] {
  --jp-layout-color0: white; --jp-content-font-color1: rgba(0, 0, 0, 0.87);
  --jp-rendermime-table-row-background: #f5f5f5; --jp-border-color1: #bdbdbd;
  --jp-rendermime-table-row-hover-background: #e0f2fe; color-scheme: light;
}
body[data-jp-theme-light="false"] {
  --jp-layout-color0: #111; --jp-content-font-color1: rgba(255, 255, 255, 1);
  --jp-rendermime-table-row-background: #212121; --jp-border-color1: #616161;
  --jp-rendermime-table-row-hover-background: rgba(3, 169, 244, 0.2); color-scheme: dark;
}
body { margin: 0; padding: 20px 28px; background: var(--jp-layout-color0);
  font-family: var(--jp-content-font-family); }
.jp-RenderedHTMLCommon { color: var(--jp-content-font-color1);
  font-family: var(--jp-content-font-family); font-size: var(--jp-content-font-size1);
  line-height: 1.6; padding-right: 20px; }
.jp-RenderedHTMLCommon > *:last-child { margin-bottom: 0.5em; }
.jp-RenderedHTMLCommon p { text-align: left; margin: 0; margin-bottom: 1em; }
.jp-RenderedHTMLCommon table { border-collapse: collapse; border-spacing: 0; border: none;
  color: var(--jp-ui-font-color1); font-size: var(--jp-ui-font-size1); table-layout: fixed;
  margin-left: auto; margin-bottom: 1em; margin-right: auto; }
.jp-RenderedHTMLCommon thead { border-bottom: 1px solid var(--jp-border-color1);
  vertical-align: bottom; }
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr {
  vertical-align: middle; padding: 0.5em; line-height: normal; white-space: normal;
  max-width: none; border: none; text-align: right; }
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: var(--jp-layout-color0); }
.jp-RenderedHTMLCommon tbody tr:nth-child(even) {
  background: var(--jp-rendermime-table-row-background); }
.jp-RenderedHTMLCommon pre { color: var(--jp-content-font-color1); border: none; margin: 0;
  padding: 0; }
"""


def notebook_page(output: str, *, dark: bool = False) -> str:
    """Return a page that shows an output as JupyterLab does."""
    light = "false" if dark else "true"
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>Notebook</title>"
        f'<style>{_STYLE}</style></head><body data-jp-theme-light="{light}">'
        f'<div class="jp-OutputArea-output jp-RenderedHTMLCommon" data-mime-type="text/html">'
        f"{output}</div></body></html>"
    )
