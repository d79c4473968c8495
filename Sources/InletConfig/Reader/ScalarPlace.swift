import InletCore

/// Finds where a byte of a scalar's value stands in the source, through quotes and escapes.
struct ScalarPlace {
    let source: SourceText

    /// The place of the value's byte `offset` (UTF-8). Values over several lines answer with their beginning.
    func position(of node: YAMLNode, offset: Int) -> SourcePosition {
        guard case .scalar(let text, let style) = node.content, node.lastLine == node.position.line,
            node.position.line <= source.lines.count
        else { return node.position }
        let before = characters(in: text, upTo: offset)
        var column = node.position.column
        switch style {
        case .plain:
            column += before.count
        case .singleQuoted:
            column += 1 + before.count + before.count { $0 == "'" }
        case .doubleQuoted:
            column = columnBehind(before.count, from: column + 1, line: source.lines[node.position.line - 1])
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

    /// Steps over `count` characters of a double-quoted text whose first is at `column`.
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
