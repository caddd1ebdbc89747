"""A page of tacho inside another one, as a notebook shows it."""
import base64
import gzip
import html

# The page becomes a document of its own (a blob), so that its address, which names the view, is its own, too.
FRAME = """<script>
const bytes = Uint8Array.from(atob("{page}"), (c) => c.charCodeAt(0));
new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer().then((page) =>
  location.replace(URL.createObjectURL(new Blob([page], {{ type: "text/html;charset=utf-8" }}))));
</script>"""


def frame(page, height=720):
    """HTML that shows a page, given as bytes, inside another one."""
    inside = FRAME.format(page=base64.b64encode(gzip.compress(page, 9)).decode())
    style = f"width: 100%; height: {height}px; border: 1px solid #8884"
    return f'<div><iframe srcdoc="{html.escape(inside)}" style="{style}"></iframe></div>'
