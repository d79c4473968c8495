import InletCore

/// What is known and kept of a file: `type:`, `labels:`, `receipts:`, `dedupe:` and `manifest:` of a route.
extension SettingsReader {
    mutating func readEvidence(_ section: ConfigSection, _ node: YAMLNode, into route: inout Route) {
        readLabels(section, node, into: &route)
        if let choice = section.string("receipts").flatMap(ReceiptPlace.init) { route.receipts = choice }
        if let choice = section.string("dedupe").flatMap(DuplicateRule.init) { route.dedupe = choice }
        guard let manifest = section.section("manifest"),
            let format = manifest.string("format").flatMap(ManifestRule.Format.init)
        else { return }
        let algorithm = manifest.string("hash").flatMap(Digest.Algorithm.init) ?? .xxh64
        route.manifest = ManifestRule(format: format, algorithm: algorithm)
        if route.unit != .folder {
            report(position("format", manifest), "'manifest' lists the files of a unit: it needs 'unit: folder'")
        }
    }

    private mutating func readLabels(_ section: ConfigSection, _ node: YAMLNode, into route: inout Route) {
        if let type = template("type", section, node) { route.labels["type"] = type }
        let texts = section.map("labels")
        guard case .mapping(let entries)? = node["labels"]?.content else { return }
        for entry in entries {
            guard let text = texts[entry.key] else { continue }
            if entry.key == "type", route.labels["type"] != nil {
                report(entry.value.position, "'type' is given twice: as a key of the route, and here")
            }
            route.labels[entry.key] = parse(text, at: entry.value) { text throws(PatternError) in
                try KeyTemplate(text)
            }
        }
    }
}
