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
                guard let text = route.with["commercial_versions"]?.text else { continue }
                let named = text.split { ", ".contains($0) }.map { String($0) }
                // Without a name the destination's stand.
                guard !named.isEmpty else { continue }
                if let stranger = named.first(where: { !VOPIJobConfig.versions.contains($0) }), !text.contains("{") {
                    let remedy = "name some of: \(VOPIJobConfig.versions.joined(separator: ", "))"
                    findings.add(
                        .warning, what, "route \(route.name) orders '\(stranger)', no kind of picture", remedy: remedy)
                    continue
                }
                let ordered = text.contains("{") ? "the kinds of pictures that '\(text)' names" : kinds(named)
                findings.add(.fine, what, "route \(route.name) orders \(ordered)")
            }
        }
    }

    private static func kinds(_ ordered: [String]) -> String {
        "\(ordered.count) of \(VOPIJobConfig.versions.count) kinds of pictures for each video: "
            + ordered.joined(separator: ", ")
    }
}
