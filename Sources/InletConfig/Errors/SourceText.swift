import InletCore

/// The text of a configuration file as lines of characters, counted as libyaml counts them.
struct SourceText: Sendable {
    /// The characters of each line, without line breaks; a final line break adds an empty line.
    let lines: [[Unicode.Scalar]]

    init(_ bytes: some Collection<UInt8>) {
        var lines: [[Unicode.Scalar]] = [[]]
        var previous: Unicode.Scalar = " "
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            if Self.isBreak(scalar) {
                if !(scalar == "\n" && previous == "\r") { lines.append([]) }
            } else {
                lines[lines.count - 1].append(scalar)
            }
            previous = scalar
        }
        self.lines = lines
    }

    /// `bytes` without the byte order mark that some editors put before UTF-8.
    static func withoutMark(_ bytes: [UInt8]) -> [UInt8] {
        bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    }

    /// The nearest existing position in the text.
    func clamped(_ position: SourcePosition) -> SourcePosition {
        let line = min(max(position.line, 1), lines.count)
        return SourcePosition(line: line, column: min(max(position.column, 1), lines[line - 1].count + 1))
    }

    /// The position of the first character after `bytes`.
    static func position(after bytes: some Collection<UInt8>) -> SourcePosition {
        let text = SourceText(bytes)
        return SourcePosition(line: text.lines.count, column: (text.lines.last?.count ?? 0) + 1)
    }

    /// The byte offset of character number `index` (from 0) in UTF-8 text; nil at its end.
    static func offset(of index: Int, in bytes: some Collection<UInt8>) -> Int? {
        var characters = -1
        for (offset, byte) in bytes.enumerated() where byte & 0xC0 != 0x80 {
            characters += 1
            if characters == index { return offset }
        }
        return nil
    }

    /// The offset of the first byte that is not valid UTF-8; nil if all are.
    static func firstInvalidOffset(in bytes: [UInt8]) -> Int? {
        if String(validating: bytes, as: UTF8.self) != nil { return nil }
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        var offset = 0
        while case .scalarValue(let scalar) = decoder.decode(&iterator) { offset += UTF8.width(scalar) }
        return offset
    }

    static func isBreak(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{85}" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }
}

// Excerpts: a line with a caret.
extension SourceText {
    /// The most characters of a line to show; of longer lines, those around the caret.
    private static let maximumWidth = 160

    /// The line of `place`, and the caret on the next line.
    ///
    /// - Parameter limit: how many characters of the line may be shown; `***` replaces the rest.
    func excerpt(at place: SourcePosition, limit: Int?) -> String {
        var line = lines[place.line - 1]
        var caret = place.column - 1
        if let limit, limit < line.count {
            line = line.prefix(limit) + Array(" ***".unicodeScalars)
            caret = min(caret, limit + 1)
        }
        if line.count > Self.maximumWidth {
            let first = max(0, min(caret - Self.maximumWidth / 2, line.count - Self.maximumWidth))
            line = Array(line[first...].prefix(Self.maximumWidth))
            caret -= first
        }
        var (shown, pad) = (String.UnicodeScalarView(), "")
        for (index, scalar) in line.enumerated() {
            let isPrintable = scalar == "\t" || DisplayText.escape(String(scalar)).unicodeScalars.count == 1
            let seen = isPrintable ? scalar : "\u{FFFD}"
            shown.append(seen)
            guard index < caret else { continue }
            pad += seen == "\t" ? "\t" : String(repeating: " ", count: DisplayWidth.of(Character(seen)))
        }
        return "\(String(shown))\n\(pad)^"
    }
}

// Positions within a scalar, through quotes and escapes.
extension SourceText {
    /// The position of the value's byte `offset` (UTF-8); for values over several lines, their beginning.
    func position(of node: YAMLNode, offset: Int) -> SourcePosition {
        guard case .scalar(let text, let style) = node.content, node.lastLine == node.position.line,
            node.position.line <= lines.count
        else { return node.position }
        let before = characters(in: text, upTo: offset)
        var column = node.position.column
        switch style {
        case .plain:
            column += before.count
        case .singleQuoted:
            column += 1 + before.count + before.count { $0 == "'" }
        case .doubleQuoted:
            column = columnBehind(before.count, from: column + 1, line: lines[node.position.line - 1])
        case .block:
            break
        }
        return SourcePosition(line: node.position.line, column: column)
    }

    private func characters(in text: String, upTo offset: Int) -> [Unicode.Scalar] {
        var bytes = 0
        return text.unicodeScalars.prefix {
            bytes += UTF8.width($0)
            return bytes <= offset
        }
    }

    /// Steps over `count` characters of a double-quoted text that starts at `column`.
    private func columnBehind(_ count: Int, from column: Int, line: [Unicode.Scalar]) -> Int {
        var column = column
        for _ in 0..<count {
            guard column <= line.count else { break }
            column += line[column - 1] == "\\" ? escapeLength(line[column...].first) : 1
        }
        return column
    }

    private func escapeLength(_ kind: Unicode.Scalar?) -> Int {
        switch kind {
        case "x": 4
        case "u": 6
        case "U": 10
        default: 2
        }
    }
}
