#include "InletWeb.h"

// Add each new file of the page here. The compiler embeds its bytes, and lists it as a dependency, so that the next build has its
// changes.

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define SVG "image/svg+xml"

#define FILE(name, type) name, type, (const unsigned char[])

// Text only: readers stop at the first zero byte, which `suffix` adds at the end.
static const struct InletWebFile files[] = {
    {FILE("index.html", HTML) {
#embed "page/index.html" suffix(, 0)
    }},
    {FILE("kiosk.html", HTML) {
#embed "page/kiosk.html" suffix(, 0)
    }},
    {FILE("style.css", CSS) {
#embed "page/style.css" suffix(, 0)
    }},
    {FILE("views.css", CSS) {
#embed "page/views.css" suffix(, 0)
    }},
    {FILE("cards.css", CSS) {
#embed "page/cards.css" suffix(, 0)
    }},
    {FILE("kiosk.css", CSS) {
#embed "page/kiosk.css" suffix(, 0)
    }},
    {FILE("icon.svg", SVG) {
#embed "page/icon.svg" suffix(, 0)
    }},
    {FILE("theme.js", SCRIPT) {
#embed "page/theme.js" suffix(, 0)
    }},
    {FILE("app.js", SCRIPT) {
#embed "page/app.js" suffix(, 0)
    }},
    {FILE("actions.js", SCRIPT) {
#embed "page/actions.js" suffix(, 0)
    }},
    {FILE("api.js", SCRIPT) {
#embed "page/api.js" suffix(, 0)
    }},
    {FILE("cards.js", SCRIPT) {
#embed "page/cards.js" suffix(, 0)
    }},
    {FILE("change.js", SCRIPT) {
#embed "page/change.js" suffix(, 0)
    }},
    {FILE("config.js", SCRIPT) {
#embed "page/config.js" suffix(, 0)
    }},
    {FILE("destinations.js", SCRIPT) {
#embed "page/destinations.js" suffix(, 0)
    }},
    {FILE("dom.js", SCRIPT) {
#embed "page/dom.js" suffix(, 0)
    }},
    {FILE("files.js", SCRIPT) {
#embed "page/files.js" suffix(, 0)
    }},
    {FILE("ignored.js", SCRIPT) {
#embed "page/ignored.js" suffix(, 0)
    }},
    {FILE("fleet.js", SCRIPT) {
#embed "page/fleet.js" suffix(, 0)
    }},
    {FILE("format.js", SCRIPT) {
#embed "page/format.js" suffix(, 0)
    }},
    {FILE("graph.js", SCRIPT) {
#embed "page/graph.js" suffix(, 0)
    }},
    {FILE("health.js", SCRIPT) {
#embed "page/health.js" suffix(, 0)
    }},
    {FILE("keys.js", SCRIPT) {
#embed "page/keys.js" suffix(, 0)
    }},
    {FILE("kiosk.js", SCRIPT) {
#embed "page/kiosk.js" suffix(, 0)
    }},
    {FILE("live.js", SCRIPT) {
#embed "page/live.js" suffix(, 0)
    }},
    {FILE("log.js", SCRIPT) {
#embed "page/log.js" suffix(, 0)
    }},
    {FILE("login.js", SCRIPT) {
#embed "page/login.js" suffix(, 0)
    }},
    {FILE("overview.js", SCRIPT) {
#embed "page/overview.js" suffix(, 0)
    }},
    {FILE("parts.js", SCRIPT) {
#embed "page/parts.js" suffix(, 0)
    }},
    {FILE("qr.js", SCRIPT) {
#embed "page/qr.js" suffix(, 0)
    }},
    {FILE("roots.js", SCRIPT) {
#embed "page/roots.js" suffix(, 0)
    }},
    {FILE("route.js", SCRIPT) {
#embed "page/route.js" suffix(, 0)
    }},
    {FILE("shell.js", SCRIPT) {
#embed "page/shell.js" suffix(, 0)
    }},
    {FILE("sound.js", SCRIPT) {
#embed "page/sound.js" suffix(, 0)
    }},
    {FILE("states.js", SCRIPT) {
#embed "page/states.js" suffix(, 0)
    }},
    {FILE("story.js", SCRIPT) {
#embed "page/story.js" suffix(, 0)
    }},
    {FILE("stream.js", SCRIPT) {
#embed "page/stream.js" suffix(, 0)
    }},
    {FILE("told.js", SCRIPT) {
#embed "page/told.js" suffix(, 0)
    }},
    {FILE("verdict.js", SCRIPT) {
#embed "page/verdict.js" suffix(, 0)
    }},
    {FILE("views.js", SCRIPT) {
#embed "page/views.js" suffix(, 0)
    }},
};

const struct InletWebFile *inlet_web_file(size_t index) {
    return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
