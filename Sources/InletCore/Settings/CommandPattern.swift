/// A program that the configuration names, with its arguments: what a process host starts, and nothing else.
package struct CommandPattern: Sendable, Hashable {
    /// The configured words. Those of `derive` may hold `DeriveRule.input` and `DeriveRule.output`, which stand for any path.
    package var words: [String]

    package init(_ words: [String]) { self.words = words }

    /// Whether files are named to it, in a folder made for each run.
    package var hasPlaces: Bool { words.contains { Self.pieces(of: $0).count > 1 } }

    /// Whether `arguments` is this command. A program without a path may be given by a whole one: whoever starts it looks for
    /// it anew.
    package func matches(_ arguments: [String]) -> Bool {
        guard arguments.count == words.count, let word = words.first, let program = arguments.first else {
            return false
        }
        let isNamed = program == word || !word.contains("/") && program.hasPrefix("/") && program.hasSuffix("/" + word)
        return isNamed && zip(words, arguments).dropFirst().allSatisfy { Self.matches($0, $1) }
    }

    private static func matches(_ word: String, _ argument: String) -> Bool {
        let pieces = pieces(of: word)
        guard pieces.count > 1, let first = pieces.first, let last = pieces.last else { return word == argument }
        guard argument.hasPrefix(first) else { return false }
        var rest = argument.dropFirst(first.count)
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard let found = rest.firstRange(of: piece), isPlain(rest[..<found.lowerBound]) else { return false }
            rest = rest[found.upperBound...]
        }
        guard rest.hasSuffix(last) else { return false }
        let path = rest.dropLast(last.count)
        // By itself a path is nothing else, whatever its letters are; within a word a shell may read it.
        return pieces.count == 2 && first.isEmpty && last.isEmpty ? path.hasPrefix("/") : isPlain(path)
    }

    private static func isPlain(_ path: Substring) -> Bool {
        path.utf8.allSatisfy { $0 > 0x7F || $0.isLetterOrDigit || "/._-+,=@%~ ".utf8.contains($0) }
    }

    /// What stands before, between and behind the two paths.
    private static func pieces(of word: String) -> [Substring] {
        var pieces: [Substring] = []
        var rest = Substring(word)
        while let next = [DeriveRule.input, DeriveRule.output].compactMap({ rest.firstRange(of: $0) })
            .min(by: { $0.lowerBound < $1.lowerBound })
        {
            pieces.append(rest[..<next.lowerBound])
            rest = rest[next.upperBound...]
        }
        return pieces + [rest]
    }
}

extension UInt8 {
    fileprivate var isLetterOrDigit: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }
}
