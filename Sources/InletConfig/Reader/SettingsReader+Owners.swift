import InletCore

/// Whose files are taken. Names are looked up while the file is read: only then is it known where in it they are, and
/// `inlet check` and a reload say at once what a start would.
extension SettingsReader {
    mutating func readRule(_ section: ConfigSection, _ node: YAMLNode, into rule: inout SourceRule) {
        if let choice = section.string("hard_links").flatMap(SourceRule.HardLinks.init) { rule.hardLinks = choice }
        guard section.values["owners"] != nil else { return }
        let named = texts("owners", section, node)
        if section.strings("owners")?.isEmpty == true {
            report(
                position("owners", section),
                "'owners' names no user, so that no file would be taken; leave it out for any")
        }
        var owners: Set<UInt32> = []
        for (text, node) in named {
            switch user(text) {
            case .found(let number): owners.insert(number)
            case .unknown:
                report(
                    node.position,
                    "there is no user \(quoted(text, node)) here; name one of 'getent passwd', or give a number")
            case .failed(let reason):
                report(node.position, "the user \(quoted(text, node)) cannot be looked up: \(reason)")
            }
        }
        rule.owners = owners
    }

    /// What was filled in is nobody's to see.
    private func quoted(_ text: String, _ node: YAMLNode) -> String {
        if case .scalar(let written, _) = node.content, written == text { return Quotation.of(text) }
        return "that ${…} gives"
    }

    private func user(_ text: String) -> UserLookup {
        guard let number = UInt32(text), text.first?.isNumber == true else { return defaults.users(text) }
        // The last one stands for no user at all.
        return number == .max ? .unknown : .found(number)
    }
}
