import InletCore
import InletMedia

/// Whether what files hold can be told, where a route asks for it.
enum MediaTypeCheck {
    static func run(_ routes: [Route], _ findings: inout Findings) {
        guard asking(routes) != nil else { return }
        if let trouble = trouble(routes) {
            findings.add(.wrong, "media types", trouble)
        } else {
            findings.add(.fine, "media types", "libmagic tells what files hold")
        }
    }

    /// Why routes cannot do what they are asked to; nil where they can, or none asks. Loads libmagic where one does.
    static func trouble(_ routes: [Route]) -> String? {
        guard let route = asking(routes) else { return nil }
        do {
            try ContentType.check()
            return nil
        } catch {
            return "route '\(route.name)' asks for them, but \(error)"
        }
    }

    private static func asking(_ routes: [Route]) -> Route? {
        routes.first { !$0.match.mediaTypes.isEmpty || !$0.validate.mediaTypes.isEmpty }
    }
}
