package import SystemPackage

/// A pattern or template that cannot be understood.
package struct PatternError: Error, Equatable, Sendable, CustomStringConvertible {
    /// UTF-8 offset into the pattern's text where the trouble begins.
    package var offset: Int
    /// A sentence for a person; says what to write instead where that is known.
    package var message: String

    package init(offset: Int, message: String) {
        self.offset = offset
        self.message = message
    }

    package var description: String { message }
}

/// A glob by the rules of gitignore(5), matched byte by byte and case-sensitively against a path below the root.
///
/// A pattern without a slash (other than a trailing one) is a name at any depth; with one it starts at the root. `*` and `?`
/// stay inside one name, `**` as a whole name spans folders, a trailing `/` means folders only, and whatever lies below
/// a match matches too. `?` is one byte. Negation (`!`) is refused: lists of patterns here are "any of them".
/// Matching takes time proportional to (pattern × path), whatever the stars.
package struct GlobPattern: Sendable, Hashable {
    package let text: String
    private let segments: [GlobSegment]
    private let directoriesOnly: Bool

    /// Parses `text`; throws on what git would silently never match (an open `[`, a lone backslash, `..`).
    package init(_ text: String) throws(PatternError) {
        var parser = GlobParser(text)
        (segments, directoriesOnly) = try parser.parse()
        self.text = text
    }

    /// The names that every match begins with: `gigs` and `2026` of `gigs/2026/*/raw/**`. For a pattern without
    /// wildcards, all of them.
    package var fixedFolders: [[UInt8]] {
        var names: [[UInt8]] = []
        for case .name(let tokens) in segments.prefix(while: { $0 != .anyDepth }) {
            let bytes = tokens.compactMap { if case .byte(let byte) = $0 { byte } else { nil } }
            guard bytes.count == tokens.count else { break }
            names.append(bytes)
        }
        return names
    }

    /// Whether `path`, relative to the root, or a folder above it matches.
    package func matches(_ path: FilePath, isDirectory: Bool = false) -> Bool {
        matches(path.bytes, isDirectory: isDirectory)
    }

    /// The same for a path already at hand as bytes.
    func matches(_ path: [UInt8], isDirectory: Bool) -> Bool {
        var active = reachable(from: 1)
        var rest = path[...]
        while let start = rest.firstIndex(where: { $0 != UInt8(ascii: "/") }) {
            let end = rest[start...].firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            active = reachable(from: step(active, over: path[start..<end]))
            if active == 0 { return false }
            let isLast = !path[end...].contains { $0 != UInt8(ascii: "/") }
            let isFolder = !isLast || isDirectory
            if active & (1 << UInt64(segments.count)) != 0, isFolder || !directoriesOnly { return true }
            rest = path[end...]
        }
        return false
    }

    /// One step of the automaton whose states are the positions between segments, as bits.
    private func step(_ active: UInt64, over name: ArraySlice<UInt8>) -> UInt64 {
        var next: UInt64 = 0
        for (position, segment) in segments.enumerated() where active & (1 << UInt64(position)) != 0 {
            switch segment {
            case .anyDepth: next |= 1 << UInt64(position)
            case .name(let tokens): if GlobToken.match(tokens, name) { next |= 1 << UInt64(position + 1) }
            }
        }
        return next
    }

    /// `active`, and the positions reached by letting a `**` stand for nothing.
    private func reachable(from active: UInt64) -> UInt64 {
        var result = active
        for (position, segment) in segments.enumerated() where result & (1 << UInt64(position)) != 0 {
            if segment == .anyDepth { result |= 1 << UInt64(position + 1) }
        }
        return result
    }
}

/// What stands between two slashes of a glob.
enum GlobSegment: Hashable, Sendable {
    /// `**`: any number of folders, also none. Never last.
    case anyDepth
    case name([GlobToken])
}

/// One element of a name's pattern.
enum GlobToken: Hashable, Sendable {
    case byte(UInt8)
    case anyByte
    case anyBytes
    case oneOf(ByteSet)

    private func accepts(_ candidate: UInt8) -> Bool {
        switch self {
        case .byte(let byte): byte == candidate
        case .anyByte: true
        case .anyBytes: false
        case .oneOf(let set): set.contains(candidate)
        }
    }

    /// Greedy match that ever only goes back to the last star, which is enough and keeps it at tokens × bytes.
    static func match(_ tokens: [GlobToken], _ name: ArraySlice<UInt8>) -> Bool {
        var token = 0
        var index = name.startIndex
        var retry: (token: Int, index: Int)?
        while index < name.endIndex {
            if token < tokens.count, tokens[token] == .anyBytes {
                token += 1
                retry = (token, index)
            } else if token < tokens.count, tokens[token].accepts(name[index]) {
                token += 1
                index += 1
            } else if let last = retry {
                token = last.token
                index = last.index + 1
                retry = (token, index)
            } else {
                return false
            }
        }
        return tokens[token...].allSatisfy { $0 == .anyBytes }
    }
}
