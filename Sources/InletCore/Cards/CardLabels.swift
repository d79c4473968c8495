/// What a person says of a card when it is inserted.
package struct CardLabels: Sendable, Equatable, Hashable, Codable {
    /// Those that keys, labels and destinations' fields can use, as `{card.roll}`.
    package enum Field: String, Sendable, CaseIterable {
        case roll
        case camera
        case `operator`
    }

    package var roll: String?
    package var camera: String?
    package var `operator`: String?
    package var note: String?

    package init(roll: String? = nil, camera: String? = nil, operator: String? = nil, note: String? = nil) {
        (self.roll, self.camera, self.operator, self.note) = (roll, camera, `operator`, note)
    }

    package subscript(field: Field) -> String? {
        switch field {
        case .roll: roll
        case .camera: camera
        case .operator: self.operator
        }
    }
}

extension CardLabels {
    /// In characters.
    package static let longestLabel = 64
    package static let longestNote = 500

    /// The same without surrounding white space and empty texts.
    ///
    /// - Throws: the first problem, with its remedy.
    package func validated() throws(PatternError) -> CardLabels {
        CardLabels(
            roll: try Self.validated(roll, "roll"), camera: try Self.validated(camera, "camera"),
            operator: try Self.validated(self.operator, "operator"),
            note: try Self.validated(note, "note", longest: Self.longestNote, isName: false))
    }

    private static func validated(
        _ text: String?, _ name: String, longest: Int = longestLabel, isName: Bool = true
    ) throws(PatternError) -> String? {
        guard let text = text?.trimmed, !text.isEmpty else { return nil }
        if text.count > longest {
            throw PatternError(message: "shorten the \(name) to \(longest) characters; it has \(text.count)")
        }
        if text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control || $0.isDeceptive }) {
            throw PatternError(message: "remove line breaks and other invisible characters from the \(name)")
        }
        guard isName else { return text }
        if text.utf8.contains(UInt8(ascii: "/")) {
            throw PatternError(message: "remove '/' from the \(name): it becomes one folder's name in keys")
        }
        if text == "." || text == ".." {
            throw PatternError(message: "choose another \(name): '\(text)' cannot be a folder's name")
        }
        return text
    }
}

/// Rolls are counted by the number at their end: `A003`, `B-12`, `7`.
extension CardLabels {
    /// A larger jump starts another series, and is no gap.
    private static let longestGap = 20
    /// Longer numbers count nothing: dates with times, serial numbers.
    private static let mostDigits = 9

    /// The roll after `roll`, with its prefix and its width: `A004` after `A003`. nil for a roll without a number at
    /// its end.
    package static func next(after roll: String) -> String? {
        numbered(roll).map { Self.roll($0.prefix, $0.number + 1, width: $0.width) }
    }

    /// The rolls that are missing between these: `A002` for `A001` and `A003`. In order; each prefix counts by itself.
    package static func gaps(in rolls: [String]) -> [String] {
        let series = Dictionary(grouping: rolls.compactMap(numbered), by: \.prefix)
        return series.sorted { $0.key < $1.key }.flatMap { prefix, rolls in
            let rolls = rolls.sorted { $0.number < $1.number }
            return zip(rolls, rolls.dropFirst()).flatMap { last, next -> [String] in
                let missing = next.number - last.number - 1
                guard (1...longestGap).contains(missing) else { return [] }
                return (1...missing).map { roll(prefix, last.number + $0, width: last.width) }
            }
        }
    }

    private static func numbered(_ roll: String) -> (prefix: String, number: Int, width: Int)? {
        let digits = roll.utf8.reversed().prefix { (0x30...0x39).contains($0) }.count
        guard (1...mostDigits).contains(digits), let number = Int(roll.suffix(digits)) else { return nil }
        return (String(roll.dropLast(digits)), number, digits)
    }

    private static func roll(_ prefix: String, _ number: Int, width: Int) -> String {
        let digits = String(number)
        return prefix + String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension String {
    /// Without white space at both ends.
    var trimmed: String {
        let rest = drop(while: \.isWhitespace)
        return rest.lastIndex { !$0.isWhitespace }.map { String(rest[...$0]) } ?? ""
    }
}
