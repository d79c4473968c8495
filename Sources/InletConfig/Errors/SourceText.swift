import InletCore

/// The text of a configuration file as lines of characters, counted the way libyaml counts them.
struct SourceText: Sendable {
    /// The characters of each line, without its break; a break at the end makes a last, empty line.
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

    /// The nearest place that exists in the text.
    func clamped(_ position: SourcePosition) -> SourcePosition {
        let line = min(max(position.line, 1), lines.count)
        return SourcePosition(line: line, column: min(max(position.column, 1), lines[line - 1].count + 1))
    }

    /// The place of the first character behind `bytes`.
    static func position(after bytes: some Collection<UInt8>) -> SourcePosition {
        let text = SourceText(bytes)
        return SourcePosition(line: text.lines.count, column: (text.lines.last?.count ?? 0) + 1)
    }

    /// Where the character number `index` (from 0) of UTF-8 text begins; nil at its end.
    static func offset(of index: Int, in bytes: some Collection<UInt8>) -> Int? {
        var characters = -1
        for (offset, byte) in bytes.enumerated() where byte & 0xC0 != 0x80 {
            characters += 1
            if characters == index { return offset }
        }
        return nil
    }

    /// The first byte of `bytes` that is not part of valid UTF-8; nil when all are.
    static func firstInvalidOffset(in bytes: [UInt8]) -> Int? {
        if String(validating: bytes, as: UTF8.self) != nil { return nil }
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        var offset = 0
        while case .scalarValue(let scalar) = decoder.decode(&iterator) { offset += UTF8.width(scalar) }
        return offset
    }

    private static func isBreak(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{85}" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }
}

/// One line of the source with a caret under one of its characters.
struct SourceExcerpt {
    /// Characters of a line that are shown; of longer ones, those around the caret.
    static let maximumWidth = 160

    private var line: [Unicode.Scalar]
    private var caret: Int

    /// `limit` is how many of the line's characters may be shown; the rest is replaced by `***`.
    init(line: [Unicode.Scalar], column: Int, limit: Int?) {
        self.line = line
        caret = column - 1
        if let limit, limit < line.count {
            self.line = line.prefix(limit) + Array(" ***".unicodeScalars)
            caret = min(caret, limit + 1)
        }
        if self.line.count > Self.maximumWidth {
            let first = max(0, min(caret - Self.maximumWidth / 2, self.line.count - Self.maximumWidth))
            self.line = Array(self.line[first...].prefix(Self.maximumWidth))
            caret -= first
        }
    }

    /// The line, a line break, and the caret below its character.
    var text: String {
        var shown = String.UnicodeScalarView()
        shown.append(contentsOf: line.map { Self.isPrintable($0) ? $0 : "\u{FFFD}" })
        var pad = ""
        for scalar in line.prefix(caret) {
            pad += scalar == "\t" ? "\t" : String(repeating: " ", count: Self.width(scalar))
        }
        return String(shown) + "\n" + pad + "^"
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\t" || DisplayText.escape(String(scalar)).unicodeScalars.count == 1
    }

    /// Terminal columns of a character: East Asian wide ones and emoji take two, combining marks none
    /// (Unicode TR11, by block).
    private static func width(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        default: break
        }
        return switch scalar.value {
        case 0x200B...0x200D: 0
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
            0x20000...0x3FFFD:
            2
        default: 1
        }
    }
}
