#include "InletWeb.h"

// A new file of the page has two places here: its bytes, which the compiler takes from the folder, and its row in the table.
// The compiler lists the files among those that it read, so that a build after a change to one of them has the change.

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define SVG "image/svg+xml"

static const unsigned char index_html[] = {
#embed "page/index.html"
};
static const unsigned char style_css[] = {
#embed "page/style.css"
};
static const unsigned char views_css[] = {
#embed "page/views.css"
};
static const unsigned char icon_svg[] = {
#embed "page/icon.svg"
};
static const unsigned char theme_js[] = {
#embed "page/theme.js"
};
static const unsigned char app_js[] = {
#embed "page/app.js"
};
static const unsigned char actions_js[] = {
#embed "page/actions.js"
};
static const unsigned char api_js[] = {
#embed "page/api.js"
};
static const unsigned char config_js[] = {
#embed "page/config.js"
};
static const unsigned char destinations_js[] = {
#embed "page/destinations.js"
};
static const unsigned char dom_js[] = {
#embed "page/dom.js"
};
static const unsigned char files_js[] = {
#embed "page/files.js"
};
static const unsigned char graph_js[] = {
#embed "page/graph.js"
};
static const unsigned char health_js[] = {
#embed "page/health.js"
};
static const unsigned char keys_js[] = {
#embed "page/keys.js"
};
static const unsigned char live_js[] = {
#embed "page/live.js"
};
static const unsigned char log_js[] = {
#embed "page/log.js"
};
static const unsigned char login_js[] = {
#embed "page/login.js"
};
static const unsigned char overview_js[] = {
#embed "page/overview.js"
};
static const unsigned char parts_js[] = {
#embed "page/parts.js"
};
static const unsigned char roots_js[] = {
#embed "page/roots.js"
};
static const unsigned char route_js[] = {
#embed "page/route.js"
};
static const unsigned char shell_js[] = {
#embed "page/shell.js"
};
static const unsigned char story_js[] = {
#embed "page/story.js"
};
static const unsigned char stream_js[] = {
#embed "page/stream.js"
};
static const unsigned char text_js[] = {
#embed "page/text.js"
};
static const unsigned char views_js[] = {
#embed "page/views.js"
};

#define FILE(name, type, bytes) {name, type, bytes, sizeof bytes}

static const struct InletWebFile files[] = {
    FILE("index.html", HTML, index_html),
    FILE("style.css", CSS, style_css),
    FILE("views.css", CSS, views_css),
    FILE("icon.svg", SVG, icon_svg),
    FILE("theme.js", SCRIPT, theme_js),
    FILE("app.js", SCRIPT, app_js),
    FILE("actions.js", SCRIPT, actions_js),
    FILE("api.js", SCRIPT, api_js),
    FILE("config.js", SCRIPT, config_js),
    FILE("destinations.js", SCRIPT, destinations_js),
    FILE("dom.js", SCRIPT, dom_js),
    FILE("files.js", SCRIPT, files_js),
    FILE("graph.js", SCRIPT, graph_js),
    FILE("health.js", SCRIPT, health_js),
    FILE("keys.js", SCRIPT, keys_js),
    FILE("live.js", SCRIPT, live_js),
    FILE("log.js", SCRIPT, log_js),
    FILE("login.js", SCRIPT, login_js),
    FILE("overview.js", SCRIPT, overview_js),
    FILE("parts.js", SCRIPT, parts_js),
    FILE("roots.js", SCRIPT, roots_js),
    FILE("route.js", SCRIPT, route_js),
    FILE("shell.js", SCRIPT, shell_js),
    FILE("story.js", SCRIPT, story_js),
    FILE("stream.js", SCRIPT, stream_js),
    FILE("text.js", SCRIPT, text_js),
    FILE("views.js", SCRIPT, views_js),
};

const struct InletWebFile *inlet_web_file(size_t index) {
    return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
