/// A file of the web page.
struct WebFile: Sendable {
    /// As it is asked for: `/` for the page itself, else below `/assets/`.
    var path: String
    /// Its media type.
    var type: String
    var text: String
}

/// All files of the web page. They are text in the binary, so that the page needs nothing from elsewhere.
enum WebFiles {
    static let all: [WebFile] =
        [
            WebFile(path: "/", type: "text/html; charset=utf-8", text: page),
            WebFile(path: "/assets/style.css", type: "text/css; charset=utf-8", text: style),
            WebFile(path: "/assets/views.css", type: "text/css; charset=utf-8", text: viewStyle),
            WebFile(path: "/assets/icon.svg", type: "image/svg+xml", text: icon),
        ]
        + scripts.map { name, text in
            WebFile(path: "/assets/\(name).js", type: "text/javascript; charset=utf-8", text: text)
        }

    private static let scripts: [(String, String)] = [
        ("theme", scriptTheme), ("app", scriptApp), ("shell", scriptShell), ("dom", scriptDOM), ("parts", scriptParts),
        ("text", scriptText), ("api", scriptAPI), ("live", scriptLive), ("stream", scriptStream), ("keys", scriptKeys),
        ("actions", scriptActions), ("health", scriptHealth), ("graph", scriptGraph), ("overview", scriptOverview),
        ("files", scriptFiles), ("story", scriptStory), ("destinations", scriptDestinations), ("roots", scriptRoots),
        ("route", scriptRoute), ("log", scriptLog), ("config", scriptConfig), ("login", scriptLogin),
    ]
}
