import InletCore

/// What is made of a route's files: `derive:`.
extension SettingsReader {
    mutating func readDerive(_ section: ConfigSection, _ node: YAMLNode, into route: inout Route) {
        var rules: [DeriveRule] = []
        for (entry, inner) in sections("derive", of: section, node) {
            guard let rule = deriveRule(entry, inner) else { continue }
            if rules.contains(where: { $0.name == rule.name && $0.extensions == rule.extensions }) {
                report(entry.position, "a rule above has the same name; give it another 'name'")
            }
            rules.append(rule)
        }
        route.derive = rules
        guard !rules.isEmpty, let place = section.positions["derive"] else { return }
        let kinds = route.to.compactMap { name in storingType(of: name) }
        guard !kinds.isEmpty, kinds.count == route.to.count, !kinds.contains(where: \.takesSidecars) else { return }
        let names = Set(kinds.map(\.name)).sorted().joined(separator: ", ")
        report(place, "no destination of this route can store derived files (type \(names))")
    }

    private mutating func deriveRule(_ section: ConfigSection, _ node: YAMLNode) -> DeriveRule? {
        let preset = section.string("thumbnail").flatMap(DeriveRule.Preset.init)
        var rule = preset?.rule ?? DeriveRule(name: "", command: [], suffix: "")
        if let name = section.string("name") { rule.name = name }
        if let command = section.strings("command") { rule.command = command }
        if section.values["extensions"] != nil { rule.extensions = extensions(section, node) }
        if let suffix = section.string("suffix") { rule.suffix = suffix }
        if let timeout = section.duration("timeout") { rule.timeout = timeout }
        if let size = section.bytes("max_size") { rule.maxSize = size }
        guard let problem = Self.problem(rule) else { return rule }
        report(position(problem.key, section), problem.message)
        return nil
    }

    private static func problem(_ rule: DeriveRule) -> (key: String, message: String)? {
        if rule.name.isEmpty {
            return ("name", "a rule of 'derive' needs 'thumbnail', or 'name', 'command' and 'suffix'")
        }
        if rule.command.isEmpty { return ("command", "'command' names no program") }
        for word in [DeriveRule.input, DeriveRule.output] where !rule.command.contains(where: { $0.contains(word) }) {
            return ("command", "'command' lacks \(word)")
        }
        if rule.suffix.isEmpty || rule.suffix.contains("/") || !rule.suffix.contains(".") {
            return ("suffix", "'suffix' is what follows the file's name, with an extension, as in .thumb.jpg")
        }
        if rule.suffix.utf8.count > 64 { return ("suffix", "'suffix' is longer than 64 bytes") }
        return nil
    }
}
