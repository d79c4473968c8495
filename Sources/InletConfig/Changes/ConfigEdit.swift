package import InletCore

/// One change to a configuration's folders, destinations or routes. It is made in the text itself, so that comments,
/// order and style of everything else stay: see `ConfigText`.
package struct ConfigEdit: Sendable, Equatable {
    /// The lists that can be changed.
    package enum List: String, Sendable, CaseIterable, Codable {
        case watch
        case destinations
        case routes
    }

    package enum Change: Sendable, Equatable {
        /// A new entry at the end. Only a destination has a name beside its values.
        case add(name: String?, JSONObject)
        /// New values for the entry of this number, from 0. `null` removes a key; an object changes only the keys of a
        /// section that it names.
        case set(Int, JSONObject)
        case remove(Int)
    }

    package var list: List
    package var change: Change

    package init(_ list: List, _ change: Change) {
        self.list = list
        self.change = change
    }
}

/// Why a text cannot be changed in place, for a person.
package struct ConfigEditFault: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// The text of a configuration, to be changed in place.
///
/// Each change is proved afterwards: the new text must hold exactly the values of the old one with the change, or it is
/// refused.
package struct ConfigText: Sendable {
    package let bytes: [UInt8]
    private let types: [DestinationType]
    private let root: YAMLNode

    /// - Throws: what makes it no YAML, with its place, as `ConfigFile` reports it.
    package init(_ bytes: [UInt8], types: [DestinationType], file: String) throws(ConfigErrors) {
        let text = SourceText.withoutMark(bytes)
        do {
            root = try YAMLDocument.parse(text)
        } catch {
            let source = SourceText(text)
            let names = ValueKind.section(types.flatMap(\.keys)).secretNames
            throw ErrorReport(file: file, source: source, mask: SecretMask(source: source, names: names))
                .errors([error])
        }
        (self.bytes, self.types) = (bytes, types)
    }

    /// The text with the changes, one after the other.
    package func applying(_ edits: [ConfigEdit]) throws(ConfigEditFault) -> [UInt8] {
        var text = self
        for edit in edits { text = try text.applying(edit) }
        return text.bytes
    }

    private func applying(_ edit: ConfigEdit) throws(ConfigEditFault) -> ConfigText {
        var surgery = YAMLSurgery(bytes)
        let expected = try plan(edit, &surgery)
        let text = surgery.finished()
        guard text.count <= ConfigFile.maximumBytes else {
            throw ConfigEditFault("the configuration would be larger than 1 MiB, its limit")
        }
        // A text that is no YAML has no values that could be the expected ones.
        guard let changed = try? ConfigText(text, types: types, file: ""), YAMLTree(changed.root) == expected else {
            throw ConfigEditFault(
                "this part of the file is written in a way that cannot be changed here; edit the file itself")
        }
        return changed
    }

    /// Makes the cuts for one change. - Returns: the values of the text afterwards.
    private func plan(_ edit: ConfigEdit, _ surgery: inout YAMLSurgery) throws(ConfigEditFault) -> YAMLTree {
        let list = root.own(edit.list.rawValue)
        if let list, list.value.position < list.keyPosition {
            throw ConfigEditFault("'\(edit.list.rawValue)' is an alias; edit the file itself")
        }
        let specs = { (index: Int?) in keys(edit.list, list?.value, index) }
        var tree = YAMLTree(root)
        switch edit.change {
        case .add(let name, let values):
            let keys = edit.list == .destinations ? types.keys(of: values["type"]?.string) : specs(nil)
            try YAMLWriter.check(values, keys)
            try surgery.append((values, keys), name: name, to: list, key: edit.list.rawValue, in: root)
            tree.append(YAMLTree(values), name: name, to: edit.list.rawValue)
        case .set(let index, let values):
            let (node, key) = try entry(index, of: list)
            try YAMLWriter.check(values, specs(index))
            try surgery.patch(node, values, specs(index))
            tree.change(edit.list.rawValue, index, key) { $0.patched(values, specs(index)) }
        case .remove(let index):
            let (_, key) = try entry(index, of: list)
            try surgery.remove(index, from: list?.value)
            tree.change(edit.list.rawValue, index, key) { _ in nil }
        }
        return tree
    }

    /// The keys that an entry may have.
    private func keys(_ list: ConfigEdit.List, _ node: YAMLNode?, _ index: Int?) -> [KeySpec] {
        let spec = ConfigKeys.specs.first { $0.name == list.rawValue }
        switch spec?.kind {
        case .list(.section(let keys))?: return keys
        default:
            guard let index, case .mapping(let entries)? = node?.content, entries.indices.contains(index),
                case .scalar(let type, _)? = entries[index].value["type"]?.content
            else { return types.keys(of: nil) }
            return types.keys(of: type)
        }
    }

    /// The entry of that number, and its key where entries have one.
    private func entry(_ index: Int, of list: YAMLNode.Entry?) throws(ConfigEditFault) -> (YAMLNode, String?) {
        switch list?.value.content {
        case .sequence(let items)? where items.indices.contains(index): return (items[index], nil)
        case .mapping(let entries)? where entries.indices.contains(index):
            return (entries[index].value, entries[index].key)
        default: throw ConfigEditFault("the file has no such entry any more; load it again")
        }
    }

    // MARK: - For a form

    /// An entry as it is written, without its secrets.
    package struct Entry: Sendable, Equatable {
        package var index: Int
        /// A folder's path, a destination's name, a route's name.
        package var name: String
        package var line: Int
        package var values: JSONObject
        /// The keys of secrets that are set, such as `auth.api_key`: their values stay here.
        package var secrets: [String]
    }

    /// The entries of a list, in the file's order.
    package func entries(_ list: ConfigEdit.List) -> [Entry] {
        guard let node = root.own(list.rawValue)?.value else { return [] }
        let items: [(String?, YAMLNode)] =
            if case .mapping(let entries) = node.content { entries.map { ($0.key, $0.value) } } else {
                node.items.map { (nil, $0) }
            }
        return items.enumerated().map { index, item in
            var entry = Entry(
                index: index, name: item.0 ?? "", line: item.1.position.line, values: [:], secrets: [])
            entry.values = Self.values(item.1, keys(list, node, index), "", &entry.secrets)
            if item.0 == nil { entry.name = (entry.values["name"] ?? entry.values["path"])?.string ?? "" }
            return entry
        }
    }

    private static func values(
        _ node: YAMLNode, _ keys: [KeySpec], _ path: String, _ secrets: inout [String]
    ) -> JSONObject {
        guard case .mapping(let entries) = node.content else { return [:] }
        var values: JSONObject = [:]
        for entry in entries {
            guard let spec = keys.first(where: { $0.name == entry.key }), !entry.value.isNull else { continue }
            values[spec.name] = value(entry.value, spec.kind, path + spec.name, &secrets)
        }
        return values
    }

    /// nil for a secret.
    private static func value(
        _ node: YAMLNode, _ kind: ValueKind, _ path: String, _ secrets: inout [String]
    ) -> JSONValue? {
        switch (node.content, kind) {
        case (.scalar(let text, _), .secret) where Interpolation.isReference(text): return .string(text)
        case (_, .secret):
            secrets.append(path)
            return nil
        case (.scalar(let text, _), .url) where SecretMask.withoutLogin(text) != text,
            (.scalar(let text, _), .string) where SecretMask.withoutLogin(text) != text:
            secrets.append(path)
            return nil
        case (.mapping, .section(let keys)), (.mapping, .brief(_, let keys)):
            return .object(values(node, keys, path + ".", &secrets))
        case (.mapping(let entries), _):
            return .object(
                entries.reduce(into: [:]) { $0[$1.key] = value($1.value, .string, path + "." + $1.key, &secrets) })
        case (.sequence(let items), .list(let item)):
            return .array(
                items.enumerated().compactMap { value($1, item, "\(path)[\($0)]", &secrets) })
        case (.sequence(let items), _):
            return .array(items.compactMap { value($0, kind, path, &secrets) })
        case (.scalar(let text, let style), _):
            return scalar(text, style, kind)
        }
    }

    private static func scalar(_ text: String, _ style: YAMLNode.Style, _ kind: ValueKind) -> JSONValue {
        switch kind {
        case .boolean: ["true": .boolean(true), "false": .boolean(false)][text] ?? .string(text)
        case .integer: Int64(text) == nil ? .string(text) : .number(text)
        default: .string(text)
        }
    }
}

extension Interpolation {
    /// Whether a text is one `${env:…}` or `${file:…}` and nothing else: then it names a secret without holding it.
    static func isReference(_ text: String) -> Bool {
        text.wholeMatch(of: /\$\{(env|file):[^{}]*\}/) != nil
    }
}

extension YAMLNode {
    /// The entry of `key` that is written in this mapping itself, not merged into it.
    func own(_ key: String) -> Entry? { ownEntries.first { $0.key == key } }

    var ownEntries: [Entry] {
        guard case .mapping(let entries) = content else { return [] }
        return entries.filter { !($0.keyPosition < position) && $0.keyPosition < end }
    }
}
