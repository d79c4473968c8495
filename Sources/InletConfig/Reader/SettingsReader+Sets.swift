import InletCore

/// What belongs together: `sidecars:`, `unit:` and `completion:` of a route.
extension SettingsReader {
    mutating func readSets(_ section: ConfigSection, _ node: YAMLNode, into route: inout Route) {
        if let choice = section.string("unit").flatMap(RouteUnit.init) { route.unit = choice }
        if let choice = section.string("completion").flatMap(Completion.init) { route.completion = choice }
        guard let sidecars = section.section("sidecars"), let inner = node["sidecars"] else { return }
        if let metadata = sidecars.boolean("metadata") { route.sidecars.metadata = metadata }
        if let wait = sidecars.duration("wait") { route.sidecars.wait = wait }
        if inner["extensions"] != nil { route.sidecars.extensions = extensions(sidecars, inner) }
        guard !route.sidecars.extensions.isEmpty else { return }
        let place = position("extensions", sidecars)
        if route.match.extensions.isEmpty, route.validate.extensions?.isEmpty ?? true {
            report(
                place,
                "'extensions' of sidecars needs those of the files they belong to: add 'extensions' to match or validate"
            )
        }
        checkTakers(of: route, at: place)
    }

    /// Reports companions that no destination could store.
    private mutating func checkTakers(of route: Route, at place: SourcePosition) {
        let kinds = route.to.compactMap { name in storingType(of: name) }
        guard !kinds.isEmpty, kinds.count == route.to.count, !kinds.contains(where: \.takesSidecars) else { return }
        let names = Set(kinds.map(\.name)).sorted().joined(separator: ", ")
        report(
            place, "no destination of this route can store sidecars (type \(names)); only 'metadata' goes with the file"
        )
    }
}
