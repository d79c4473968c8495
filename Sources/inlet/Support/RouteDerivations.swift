import InletAgent
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

/// What `route` says of the files that programs would make of one (`derive:`).
enum RouteDerivations {
    /// - Parameter destinations: those that could be made, by name.
    static func lines(
        _ table: RouteTable, _ arrival: Arrival, _ facts: Facts, _ plan: Plan, _ destinations: [String: Destination]
    ) -> [String] {
        let storing = plan.destinations.filter { destinations[$0]?.takesSidecars != false }.joined(separator: ", ")
        return table.derivations(of: arrival, facts: facts).map { rule in
            let word = rule.command.first ?? ""
            guard let program = ProgramSearch.find(word) else {
                return Console.tint(
                    "  derives  \(rule.name): there is no program '\(word)'; the file goes without it", .warning)
            }
            let companion = Companion(path: arrival.path, kind: .derived, ending: rule.suffix)
            let key = companion.key(beside: plan.key, of: arrival.path)
            return "  derives  \(rule.name): \(DisplayText.escape(key)), made by \(program.display), to \(storing)"
        }
    }
}
