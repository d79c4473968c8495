import InletCore
import InletMedia

/// Whether what files hold can be told, where a route asks for it.
enum MediaTypeCheck {
    static func run(_ routes: [Route], _ findings: inout Findings) {
        let asking = routes.filter { !$0.match.mediaTypes.isEmpty || !$0.validate.mediaTypes.isEmpty }
        guard let first = asking.first else { return }
        do {
            try ContentType.check()
            findings.add(.fine, "media types", "libmagic tells what files hold")
        } catch {
            findings.add(.wrong, "media types", "route '\(first.name)' asks for them, but \(error)")
        }
    }
}
