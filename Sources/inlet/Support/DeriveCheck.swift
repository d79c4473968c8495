import InletAgent
import InletCore
import InletLinux
import SystemPackage

/// Whether the programs of `derive:` are there.
enum DeriveCheck {
    static func run(_ routes: [Route], _ findings: inout Findings) {
        for route in routes {
            for rule in route.derive {
                guard let word = rule.command.first else { continue }
                let name = "derive \(rule.name) of route \(route.name)"
                if let path = ProgramSearch.find(word) {
                    findings.add(.fine, name, "made by \(path.display)")
                } else {
                    findings.add(
                        .warning, name, "there is no program '\(word)'; files go without it",
                        remedy: "install it, or name it with its path")
                }
            }
        }
    }
}
