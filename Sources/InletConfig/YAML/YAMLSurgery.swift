import InletCore

/// Cuts in a YAML text, at places that the parser told. All of them are collected first, and then made at once.
struct YAMLSurgery {
    private let mark: [UInt8]
    private let text: [Unicode.Scalar]
    /// Where each line begins.
    private let lines: [Int]
    private let newline: String
    private var cuts: [(range: Range<Int>, text: String)] = []

    init(_ bytes: [UInt8]) {
        let body = SourceText.withoutMark(bytes)
        mark = Array(bytes.prefix(bytes.count - body.count))
        text = Array(String(decoding: body, as: UTF8.self).unicodeScalars)
        var lines = [0]
        for (offset, scalar) in text.enumerated() where SourceText.isBreak(scalar) {
            if scalar == "\r", offset + 1 < text.count, text[offset + 1] == "\n" { continue }
            lines.append(offset + 1)
        }
        self.lines = lines
        newline = String(decoding: body, as: UTF8.self).unicodeScalars.contains("\r") ? "\r\n" : "\n"
    }

    /// The text with all cuts; unchanged where two of them overlap.
    func finished() -> [UInt8] {
        let ordered = cuts.enumerated().sorted {
            ($0.element.range.lowerBound, $0.offset) < ($1.element.range.lowerBound, $1.offset)
        }.map(\.element)
        var result = String.UnicodeScalarView()
        var done = 0
        for cut in ordered {
            guard cut.range.lowerBound >= done else { return mark + String(String.UnicodeScalarView(text)).utf8 }
            result.append(contentsOf: text[done..<cut.range.lowerBound])
            result.append(contentsOf: cut.text.unicodeScalars)
            done = cut.range.upperBound
        }
        result.append(contentsOf: text[done...])
        return mark + String(result).utf8
    }

    // MARK: - Places

    private func offset(_ place: SourcePosition) -> Int {
        min(lines[min(place.line, lines.count) - 1] + place.column - 1, text.count)
    }

    /// The offset behind a line and its break.
    private func end(ofLine line: Int) -> Int { line < lines.count ? lines[line] : text.count }

    private func isBlank(_ line: Int) -> Bool {
        text[lines[line - 1]..<end(ofLine: line)].allSatisfy { $0 == " " || $0 == "\t" || SourceText.isBreak($0) }
    }

    /// The depth of a comment that has its line for itself; nil for other lines.
    private func depth(ofComment line: Int) -> Int? {
        let content = text[lines[line - 1]..<end(ofLine: line)]
        let depth = content.prefix { $0 == " " }.count
        return content.dropFirst(depth).first == "#" ? depth : nil
    }

    /// The last line with a part of the value.
    private func lastLine(of node: YAMLNode) -> Int {
        var line = node.end.line
        if node.end.column == 1, line > node.position.line { line -= 1 }
        while line > node.position.line, isBlank(line) { line -= 1 }
        return min(line, lines.count)
    }

    private func isAlias(_ entry: YAMLNode.Entry) -> Bool { entry.value.position < entry.keyPosition }

    private func lastLine(of entry: YAMLNode.Entry) -> Int {
        isAlias(entry) ? entry.keyPosition.line : max(lastLine(of: entry.value), entry.keyPosition.line)
    }

    /// The offset behind the colon of a key.
    private func colon(of entry: YAMLNode.Entry) -> Int {
        var place = offset(entry.keyPosition)
        let quote = text[place]
        if quote == "\"" || quote == "'" {
            place = (text[(place + 1)...].firstIndex(of: quote) ?? place) + 1
        } else {
            place += entry.key.unicodeScalars.count
        }
        while place < text.count, text[place] == " " { place += 1 }
        return min(place + 1, text.count)
    }

    private static func margin(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }

    private static let shared = ConfigEditFault(
        "this value is shared with other parts of the file (an anchor or an alias); edit the file itself")
    private static let alone = ConfigEditFault("the entry would have no keys left; remove it instead")

    private static let commented = ConfigEditFault(
        "a comment stands within the lines that would change, and would be lost; edit the file itself")

    /// Refuses a cut that would take a comment with it which belongs to something else.
    private func requireNoComment(in range: Range<Int>) throws(ConfigEditFault) {
        var quote: Unicode.Scalar?
        var before: Unicode.Scalar = " "
        for scalar in text[range] {
            let isApart = before == " " || before == "\t" || SourceText.isBreak(before)
            if let open = quote {
                if scalar == open { quote = nil }
            } else if scalar == "#", isApart {
                throw Self.commented
            } else if scalar == "\"" || scalar == "'", isApart || "[{,:".unicodeScalars.contains(before) {
                quote = scalar
            }
            before = scalar
        }
    }

    // MARK: - Cuts

    private mutating func insert(_ lines: [String], behindLine line: Int) {
        let place = end(ofLine: line)
        let isOpen = place == text.count && !(text.last.map(SourceText.isBreak) ?? true)
        let body = lines.map { $0 + newline }.joined()
        cuts.append((place..<place, (isOpen ? newline : "") + body))
    }

    private mutating func insert(_ new: String, at place: Int) { cuts.append((place..<place, new)) }

    private mutating func removeLines(_ first: Int, _ last: Int) {
        cuts.append((lines[first - 1]..<end(ofLine: last), ""))
    }

    /// Adds an entry to a list at the top.
    ///
    /// - Parameter list: nil where the file has none.
    mutating func append(
        _ added: (values: JSONObject, keys: [KeySpec]), name: String?, to list: YAMLNode.Entry?, key: String,
        in root: YAMLNode
    ) throws(ConfigEditFault) {
        let new = YAMLWriter.entry(added.values, added.keys)
        if let name, name.isEmpty { throw ConfigEditFault("give the new destination a name") }
        guard let list else {
            if root.isFlow { throw ConfigEditFault("the whole file is in braces; edit the file itself") }
            let margin = Self.margin(root.position.column - 1)
            let entry = Self.entry(new, name, step: 2).map { margin + "  " + $0 }
            return insert(["", "\(margin)\(key):"] + entry, behindLine: lines.count)
        }
        let node = list.value
        if let name, node[name] != nil { throw ConfigEditFault("there is a destination '\(name)' already") }
        if node.isNull || (node.isFlow && YAMLTree(node).isEmpty) {
            cuts.append((offset(node.position)..<offset(node.end), ""))
            let margin = Self.margin(list.keyPosition.column - 1)
            let entry = Self.entry(new, name, step: 2).map { margin + "  " + $0 }
            return insert(entry, behindLine: max(node.end.line, list.keyPosition.line))
        }
        if node.isFlow {
            let text = YAMLWriter.inline(.object(added.values), .section(added.keys))
            let last = try spans(of: node).last?.upperBound ?? offset(node.position) + 1
            return insert(", " + (name.map { YAMLWriter.name($0) + ": " } ?? "") + text, at: last)
        }
        let column = node.position.column - 1
        var line = lastLine(of: node)
        // Comments at the end of the last entry stay with it.
        while line < lines.count, let comment = depth(ofComment: line + 1), comment > column { line += 1 }
        let entry = Self.entry(new, name, step: step(of: node)).map { Self.margin(column) + $0 }
        insert((areApart(node) ? [""] : []) + entry, behindLine: line)
    }

    /// Where each entry of a list or mapping in brackets is.
    private func spans(of node: YAMLNode) throws(ConfigEditFault) -> [Range<Int>] {
        var spans: [Range<Int>] = []
        for item in node.items {
            if item.position < node.position { throw Self.shared }
            spans.append(offset(item.position)..<offset(item.end))
        }
        for entry in node.ownEntries {
            if isAlias(entry) { throw Self.shared }
            spans.append(offset(entry.keyPosition)..<offset(entry.value.end))
        }
        return spans
    }

    private func depthStep(_ entry: YAMLNode.Entry) -> Int? {
        guard case .mapping = entry.value.content, !entry.value.isFlow, !isAlias(entry) else { return nil }
        return entry.value.position.column - entry.keyPosition.column
    }

    /// How far values are behind their keys.
    private func step(of node: YAMLNode) -> Int { node.ownEntries.lazy.compactMap { depthStep($0) }.first ?? 2 }

    private static func entry(_ lines: [String], _ name: String?, step: Int) -> [String] {
        guard let name else { return YAMLWriter.dashed(lines) }
        return [YAMLWriter.name(name) + ":"] + lines.map { margin(step) + $0 }
    }

    /// Whether blank lines separate the entries.
    private func areApart(_ node: YAMLNode) -> Bool {
        let starts = node.items.map(\.position.line) + node.ownEntries.map(\.keyPosition.line)
        guard starts.count > 1, var line = starts.last else { return false }
        while line > 1, depth(ofComment: line - 1) != nil { line -= 1 }
        return line > 1 && isBlank(line - 1)
    }

    /// Removes an entry of a list at the top.
    mutating func remove(_ index: Int, from list: YAMLNode?) throws(ConfigEditFault) {
        guard let list else { return }
        let entries = list.ownEntries
        if list.isFlow {
            let spans = try spans(of: list)
            guard spans.indices.contains(index) else { throw Self.shared }
            let span = spans[index]
            let next = index + 1 < spans.count ? spans[index + 1].lowerBound : nil
            let before = next == nil && index > 0 ? spans[index - 1].upperBound : span.lowerBound
            try requireNoComment(in: before..<span.lowerBound)
            try requireNoComment(in: span.upperBound..<(next ?? span.upperBound))
            cuts.append((before..<(next ?? span.upperBound), ""))
            return
        }
        if case .mapping = list.content {
            guard entries.indices.contains(index) else { throw Self.shared }
            return removeLines(entries[index].keyPosition.line, lastLine(of: entries[index]))
        }
        let item = list.items[index]
        if item.position < list.position { throw Self.shared }
        removeItem(item, of: list)
    }

    private mutating func removeItem(_ item: YAMLNode, of list: YAMLNode) {
        var first = item.position.line
        while first > 1, text[min(lines[first - 1] + list.position.column - 1, text.count - 1)] != "-" { first -= 1 }
        removeLines(first, lastLine(of: item))
    }

    /// Changes the values of some keys of a mapping.
    mutating func patch(_ node: YAMLNode, _ values: JSONObject, _ keys: [KeySpec]) throws(ConfigEditFault) {
        guard case .mapping(let all) = node.content, YAMLTree(node).patched(values, keys) != nil else {
            throw Self.alone
        }
        let own = node.ownEntries.sorted { $0.keyPosition < $1.keyPosition }
        for member in YAMLWriter.members(values, keys) {
            let entry = own.first { $0.key == member.key }
            guard let new = YAMLTree(member.value) else {
                if let entry {
                    try removeKey(entry, of: node, own)
                } else if all.contains(where: { $0.key == member.key }) {
                    throw Self.shared
                }
                continue
            }
            guard let entry else {
                try add(member, to: node, own)
                continue
            }
            if case .object(let inner) = member.value, case .mapping = entry.value.content,
                let innerKeys = member.kind.patchedKeys
            {
                if isAlias(entry) { throw Self.shared }
                if YAMLTree(entry.value).patched(inner, innerKeys) == nil {
                    try removeKey(entry, of: node, own)
                } else {
                    try patch(entry.value, inner, innerKeys)
                }
            } else if YAMLTree(entry.value) != new {
                try replace(entry, by: member)
            }
        }
    }

    private mutating func add(
        _ member: YAMLWriter.Member, to node: YAMLNode, _ own: [YAMLNode.Entry]
    ) throws(ConfigEditFault) {
        guard let first = own.first, let last = own.last else { throw Self.shared }
        if node.isFlow {
            if isAlias(last) { throw Self.shared }
            let new = "\(YAMLWriter.name(member.key)): \(YAMLWriter.inline(member.value, member.kind))"
            return insert(", " + new, at: offset(last.value.end))
        }
        let margin = Self.margin(first.keyPosition.column - 1)
        insert(YAMLWriter.lines(member).map { margin + $0 }, behindLine: lastLine(of: last))
    }

    private mutating func removeKey(
        _ entry: YAMLNode.Entry, of node: YAMLNode, _ own: [YAMLNode.Entry]
    ) throws(ConfigEditFault) {
        let place = own.firstIndex { $0.keyPosition == entry.keyPosition } ?? 0
        let start = offset(entry.keyPosition)
        let next = place + 1 < own.count ? own[place + 1] : nil
        if !node.isFlow, text[lines[entry.keyPosition.line - 1]..<start].allSatisfy({ $0 == " " }) {
            return removeLines(entry.keyPosition.line, lastLine(of: entry))
        }
        if let next {
            // A comment on the key's own line goes with it.
            let own = node.isFlow ? offset(entry.value.end) : end(ofLine: lastLine(of: entry))
            let place = offset(next.keyPosition)
            if own < place { try requireNoComment(in: own..<place) }
            cuts.append((start..<place, ""))
        } else if node.isFlow, place > 0, !isAlias(own[place - 1]), !isAlias(entry) {
            try requireNoComment(in: offset(own[place - 1].value.end)..<start)
            cuts.append((offset(own[place - 1].value.end)..<offset(entry.value.end), ""))
        } else {
            throw Self.shared
        }
    }

    private mutating func replace(
        _ entry: YAMLNode.Entry, by member: YAMLWriter.Member
    ) throws(ConfigEditFault) {
        let node = entry.value
        let start = offset(node.position)
        if isAlias(entry) || (start < text.count && text[start] == "&") { throw Self.shared }
        if replaceItems(of: node, by: member) { return }
        let new = YAMLWriter.inline(member.value, member.kind)
        let isBlock = if case .scalar(_, .block) = node.content { true } else { false }
        if isBlock || (!node.isFlow && node.isCollection) {
            let colon = colon(of: entry)
            let header = isBlock ? start..<endOfText(ofLine: node.position.line) : colon..<colon
            if isBlock { try requireNoComment(in: header) }
            cuts.append((header, isBlock ? new : " " + new))
            let last = lastLine(of: node)
            guard last > entry.keyPosition.line else { return }
            // A number sign in a text over several lines begins no comment.
            if !isBlock { try requireNoComment(in: lines[entry.keyPosition.line]..<end(ofLine: last)) }
            removeLines(entry.keyPosition.line + 1, last)
        } else {
            if node.isFlow { try requireNoComment(in: start..<offset(node.end)) }
            let isClose = start > 0 && text[start - 1] == ":"
            cuts.append((start..<offset(node.end), (isClose ? " " : "") + new))
        }
    }

    private func endOfText(ofLine line: Int) -> Int {
        var place = end(ofLine: line)
        while place > lines[line - 1], SourceText.isBreak(text[place - 1]) { place -= 1 }
        return place
    }

    /// Removes and adds lines of a list of single values, where nothing else changes.
    private mutating func replaceItems(of node: YAMLNode, by member: YAMLWriter.Member) -> Bool {
        guard case .sequence(let items) = node.content, !node.isFlow, case .array(let wanted) = member.value,
            case .list(let kind) = member.kind, items.allSatisfy({ !$0.isCollection && !($0.position < node.position) })
        else { return false }
        let new = wanted.compactMap { YAMLTree($0) }
        let kept = items.filter { item in new.contains(YAMLTree(item)) }
        guard new.count == wanted.count, let last = items.last, !kept.isEmpty,
            new.prefix(kept.count).elementsEqual(kept.map { YAMLTree($0) })
        else { return false }
        for item in items where !new.contains(YAMLTree(item)) { removeItem(item, of: node) }
        let margin = Self.margin(node.position.column - 1)
        let added = wanted.dropFirst(kept.count).map { "\(margin)- \(YAMLWriter.inline($0, kind))" }
        if !added.isEmpty { insert(added, behindLine: lastLine(of: last)) }
        return true
    }
}

extension YAMLNode {
    fileprivate var isCollection: Bool { if case .scalar = content { false } else { true } }
}
