package import InletCore
internal import InletLinux

/// A line of text with optional colours and a known width in the terminal. Control characters are escaped.
package struct StyledText: Sendable, Equatable, ExpressibleByStringInterpolation {
    private struct Span: Sendable, Equatable {
        var text: String
        var tint: TextStyle?
    }

    private var spans: [Span]

    package init(_ text: String = "", _ tint: TextStyle? = nil) {
        spans = text.isEmpty ? [] : [Span(text: DisplayText.escape(text), tint: tint)]
    }

    package init(stringLiteral text: String) { self.init(text) }

    package var width: Int { spans.reduce(0) { $0 + DisplayWidth.of($1.text) } }

    package static func + (left: StyledText, right: StyledText) -> StyledText {
        var sum = left
        sum.spans += right.spans
        return sum
    }

    package static func += (left: inout StyledText, right: StyledText) { left.spans += right.spans }

    /// At most `columns` of it; a cut text ends with `…`.
    package func cut(_ columns: Int) -> StyledText {
        guard width > columns else { return self }
        var (result, left) = (StyledText(), columns)
        for span in spans {
            let width = DisplayWidth.of(span.text)
            // The last column is for the mark, because a later span is left out.
            if width < left {
                result.spans.append(span)
                left -= width
            } else {
                let text = DisplayWidth.prefix(span.text, left - 1) + (left > 0 ? "…" : "")
                if !text.isEmpty { result.spans.append(Span(text: text, tint: span.tint)) }
                return result
            }
        }
        return result
    }

    /// At most `columns` of it, with `…` in place of the middle; in the colour of its first part.
    package func shortened(_ columns: Int) -> StyledText {
        width > columns ? StyledText(DisplayWidth.shorten(text(hasColour: false), columns), spans.first?.tint) : self
    }

    /// Lines of at most `columns`, broken between words; a longer word breaks at the line's end.
    package func wrapped(_ columns: Int) -> [StyledText] {
        let tint = spans.first?.tint
        var lines: [String] = []
        var line = ""
        for word in text(hasColour: false).split(separator: " ") {
            let longer = line.isEmpty ? String(word) : "\(line) \(word)"
            guard DisplayWidth.of(longer) > columns else {
                line = longer
                continue
            }
            if !line.isEmpty { lines.append(line) }
            line = String(word)
            while DisplayWidth.of(line) > columns {
                let part = DisplayWidth.prefix(line, columns)
                // A character that is wider than the line gets a line of its own.
                let count = max(1, part.count)
                lines.append(String(line.prefix(count)))
                line = String(line.dropFirst(count))
            }
        }
        return (line.isEmpty ? lines : lines + [line]).map { StyledText($0, tint) }
    }

    package func text(hasColour: Bool) -> String {
        spans.map { span in hasColour ? span.tint?.paint(span.text) ?? span.text : span.text }.joined()
    }
}

extension StyledText {
    /// `████████····  62 %`
    ///
    /// - Parameter share: from 0 to 1; values outside are clamped.
    package static func bar(_ share: Double, width: Int) -> StyledText {
        let share = share.isFinite ? min(1, max(0, share)) : 1
        let filled = Int(share * Double(width))
        let percent = DisplayWidth.padLeft("\(Int(share * 100))", 3)
        return StyledText(String(repeating: "█", count: filled), .good)
            + StyledText(String(repeating: "·", count: width - filled), .faint) + StyledText(" \(percent) %")
    }
}

extension WallTime {
    /// `18:00` by the system's clock, after the day unless that is today.
    var shortClock: String {
        let today = WallTime.now.day()
        return day() == today ? String(clock().prefix(5)) : "\(day()) \(clock().prefix(5))"
    }
}
