import InletCore
import InletPipelines

/// How many kinds of pictures are ordered of each video that goes to a VOPI server, which wants credits for them.
enum PictureCheck {
    static func run(_ settings: Settings, _ findings: inout Findings) {
        for destination in settings.destinations where destination.type == "vopi" {
            // One that cannot be read was refused when the destinations were made.
            guard let job = try? VOPIJobConfig(destination.values.section("job")) else { continue }
            let what = "destination \(destination.name)"
            findings.add(.fine, what, "orders " + kinds(job.orderedVersions))
            for route in settings.routes where route.to.contains(destination.name) {
                // Where it says nothing, the destination's stand.
                guard let text = route.with["commercial_versions"]?.text, !text.allSatisfy(\.isWhitespace) else {
                    continue
                }
                check(text, of: "route \(route.name)", job, what, &findings)
            }
        }
    }

    private static func check(
        _ text: String, of route: String, _ job: VOPIJobConfig, _ what: String, _ findings: inout Findings
    ) {
        if text.contains("{") {
            return findings.add(.fine, what, "\(route) orders the kinds of pictures that '\(text)' names")
        }
        var job = job
        job.commercialVersions = VOPIJobConfig.versions(in: text)
        if let (_, reason) = job.objection() { return findings.add(.warning, what, "\(route): \(reason)") }
        findings.add(.fine, what, "\(route) orders " + kinds(job.orderedVersions))
    }

    private static func kinds(_ ordered: [String]) -> String {
        "\(ordered.count) of \(VOPIJobConfig.versions.count) kinds of pictures for each video: "
            + ordered.joined(separator: ", ")
    }
}
