/// A file of the web page.
struct WebFile: Sendable {
    /// `/` or `/assets/…`.
    var path: String
    /// Its media type.
    var type: String
    var text: String
}

/// All that the page is made of.
enum WebFiles {
    static let all: [WebFile] = [
        WebFile(
            path: "/", type: "text/html; charset=utf-8",
            text: """
                <!doctype html>
                <html lang="en">
                <head><meta charset="utf-8"><title>Inlet</title></head>
                <body><h1>Inlet</h1><p>The API is at <a href="/api/v1/openapi.json">/api/v1</a>.</p></body>
                </html>

                """)
    ]
}
