import InletCore

extension SettingsReader {
    /// The templates under `with`, and the default ones of what `targets` understand beyond them.
    mutating func fields(
        _ section: ConfigSection, _ node: YAMLNode, of targets: [String], _ destinations: ConfigSection?
    ) -> [String: KeyTemplate] {
        let known = knownFields(of: targets, destinations)
        var fields: [String: KeyTemplate] = [:]
        if case .mapping(let entries)? = node["with"]?.content {
            let texts = section.map("with")
            for entry in entries {
                if let known, !known.contains(where: { $0.name == entry.key }) {
                    reportUnknownField(entry, known, targets)
                } else if let text = texts[entry.key] {
                    checkChoice(text, at: entry, known ?? [])
                    fields[entry.key] = parse(text, at: entry.value) { text throws(PatternError) in
                        try KeyTemplate(text)
                    }
                }
            }
        }
        return FieldSpec.filled(fields, known ?? [])
    }

    /// What the types of `targets` understand, each name once; nil when one of them has an error of its own, so that
    /// nobody knows.
    func knownFields(of targets: [String], _ destinations: ConfigSection?) -> [FieldSpec]? {
        var known: [FieldSpec] = []
        for target in targets {
            guard let name = destinations?.section(target)?.string("type"),
                let type = values.types.first(where: { $0.name == name })
            else { return nil }
            known += type.fields.filter { spec in !known.contains { $0.name == spec.name } }
        }
        return targets.isEmpty ? nil : known
    }

    /// Reports a word that no file could be delivered with; what a template becomes is seen file by file.
    private mutating func checkChoice(_ text: String, at entry: YAMLNode.Entry, _ known: [FieldSpec]) {
        let choices = known.first { $0.name == entry.key }?.choices ?? []
        guard !choices.isEmpty, !text.contains(where: { "{}".contains($0) }), !text.allSatisfy(\.isWhitespace),
            !choices.contains(text.lowercased())
        else { return }
        let hint = Suggestion.nearest(to: text, in: choices).map { "; did you mean '\($0)'?" } ?? ""
        report(
            entry.value.position,
            "\(Quotation.of(entry.key)) is one of \(choices.joined(separator: ", ")), not \(Quotation.of(text))\(hint)")
    }

    private mutating func reportUnknownField(_ entry: YAMLNode.Entry, _ known: [FieldSpec], _ targets: [String]) {
        let names = known.map(\.name)
        let hint =
            if names.isEmpty {
                targets.count == 1
                    ? "destination '\(targets[0])' takes no fields" : "none of this route's destinations takes fields"
            } else if let name = Suggestion.nearest(to: entry.key, in: names) {
                "did you mean '\(name)'?"
            } else {
                "known fields: \(names.joined(separator: ", "))"
            }
        report(entry.keyPosition, "unknown field \(Quotation.of(entry.key)) in with; \(hint)")
    }
}
