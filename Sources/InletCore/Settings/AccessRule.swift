package import SystemPackage

/// A file, or a folder with everything below it, that a confined process may use.
package struct AccessRule: Sendable, Hashable {
    /// Absolute, without symlinks.
    package var path: FilePath
    /// Whether files may be created, renamed, removed and written, in addition to being read.
    package var mayWrite: Bool

    package init(_ path: FilePath, mayWrite: Bool = false) {
        self.path = path
        self.mayWrite = mayWrite
    }

    /// Whether this rule allows everything that `other` requests.
    package func covers(_ other: AccessRule) -> Bool {
        other.path.isWithin(path) && (mayWrite || !other.mayWrite)
    }
}

/// A program of the configuration with its arguments: a process host starts no others.
package struct CommandPattern: Sendable, Hashable {
    /// The configured words. Those of `derive` may contain `DeriveRule.input` and `DeriveRule.output`, which stand for
    /// any path.
    package var words: [String]
    /// The prefix of its paths, up to a slash; empty for any.
    package var place: String

    package init(_ words: [String], place: String = "") { (self.words, self.place) = (words, place) }

    /// Whether it gets files as arguments, in a folder made for each run.
    package var hasPlaces: Bool { words.contains { Self.pieces(of: $0).count > 1 } }

    /// Whether `arguments` is this command. A program without a path may be given by an absolute one: the process host
    /// looks it up again.
    package func matches(_ arguments: [String]) -> Bool {
        guard arguments.count == words.count, let word = words.first, let program = arguments.first else {
            return false
        }
        let isNamed = program == word || !word.contains("/") && program.hasPrefix("/") && program.hasSuffix("/" + word)
        return isNamed && zip(words, arguments).dropFirst().allSatisfy { matches($0, $1) }
    }

    private func matches(_ word: String, _ argument: String) -> Bool {
        let pieces = Self.pieces(of: word)
        guard pieces.count > 1, let first = pieces.first, let last = pieces.last else { return word == argument }
        guard argument.hasPrefix(first) else { return false }
        var rest = argument.dropFirst(first.count)
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            // The place may contain the same text.
            let searched = rest.hasPrefix(place) ? rest.dropFirst(place.count) : rest
            guard let found = searched.firstRange(of: piece), isPlain(rest[..<found.lowerBound]) else { return false }
            rest = rest[found.upperBound...]
        }
        guard rest.hasSuffix(last) else { return false }
        let path = rest.dropLast(last.count)
        // A path that is a whole word is safe with any characters; within a word, a shell may read it.
        let isAlone = pieces.count == 2 && first.isEmpty && last.isEmpty
        return isAlone ? path.hasPrefix("/") && isBelow(path) : isPlain(path)
    }

    private func isPlain(_ path: Substring) -> Bool {
        isBelow(path) && path.utf8.allSatisfy { $0 > 0x7F || $0.isLetterOrDigit || "/._-+,=@%~ ".utf8.contains($0) }
    }

    /// In a shell's word a space starts another argument, so only the configured place may contain one.
    private func isBelow(_ path: Substring) -> Bool {
        guard !place.isEmpty else { return true }
        guard path.hasPrefix(place) else { return false }
        let rest = path.dropFirst(place.count)
        return !rest.contains(" ") && !rest.split(separator: "/").contains("..")
    }

    /// The text before, between and after the two paths.
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
