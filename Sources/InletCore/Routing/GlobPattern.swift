package import SystemPackage

/// An invalid text: a pattern, a template, an address.
package struct PatternError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The UTF-8 offset of the error in the text.
    package var offset: Int
    /// A sentence for people, with the correct form if it is known.
    package var message: String

    package init(offset: Int = 0, message: String) {
        self.offset = offset
        self.message = message
    }

    package var description: String { message }
}

/// A glob with the rules of gitignore(5), matched byte by byte and case-sensitively against a path below the root.
///
/// A pattern without a slash (except a trailing one) matches a name at any depth; with one it starts at the root. The
/// wildcards `*` and `?` stay within a name, `**` as a whole name spans folders, a trailing `/` matches only folders.
/// Everything below a match matches too. `?` is one byte. Negation (`!`) is an error, because lists of patterns here
/// mean "any of them". Matching takes time proportional to (pattern × path), whatever the stars.
package struct GlobPattern: Sendable, Hashable {
    package let text: String
    /// The text between two slashes.
    private let segments: [[GlobToken]]
    private let directoriesOnly: Bool

    /// Parses `text`; throws on forms that git would silently never match (an open `[`, a lone backslash, `..`).
    package init(_ text: String) throws(PatternError) {
        var parser = GlobParser(bytes: Array(text.utf8))
        (segments, directoriesOnly) = try parser.parse()
        self.text = text
    }

    /// The names that every match starts with: `gigs` and `2026` of `gigs/2026/*/raw/**`. All names of a pattern
    /// without wildcards.
    package var fixedFolders: [[UInt8]] {
        var names: [[UInt8]] = []
        for tokens in segments.prefix(while: { $0.first != .anyDepth }) {
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

    /// The same for a path as bytes.
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

    /// A step of the automaton whose states are the positions between segments, as bits.
    private func step(_ active: UInt64, over name: ArraySlice<UInt8>) -> UInt64 {
        var next: UInt64 = 0
        for (position, segment) in segments.enumerated() where active & (1 << UInt64(position)) != 0 {
            if segment.first == .anyDepth {
                next |= 1 << UInt64(position)
            } else if GlobToken.match(segment, name) {
                next |= 1 << UInt64(position + 1)
            }
        }
        return next
    }

    /// `active`, and the positions reachable by matching `**` with nothing.
    private func reachable(from active: UInt64) -> UInt64 {
        var result = active
        for (position, segment) in segments.enumerated() where result & (1 << UInt64(position)) != 0 {
            if segment.first == .anyDepth { result |= 1 << UInt64(position + 1) }
        }
        return result
    }
}

/// An element of a name's pattern.
enum GlobToken: Hashable, Sendable {
    case byte(UInt8)
    case anyByte
    case anyBytes
    case oneOf(Set<UInt8>)
    /// `**`, alone in its segment, which is never the last: any number of folders, including none.
    case anyDepth

    private func accepts(_ candidate: UInt8) -> Bool {
        switch self {
        case .byte(let byte): byte == candidate
        case .anyByte: true
        case .anyBytes, .anyDepth: false
        case .oneOf(let set): set.contains(candidate)
        }
    }

    /// A greedy match that backtracks only to the last star, which suffices and keeps the time at tokens × bytes.
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

/// Parses the text of a `GlobPattern`.
struct GlobParser {
    private static let slash = UInt8(ascii: "/")
    /// The matcher's states are the bits of one word.
    private static let mostSegments = 60

    fileprivate let bytes: [UInt8]
    fileprivate var index = 0

    /// The segments, the first one anchored to the root, and whether only folders match.
    mutating func parse() throws(PatternError) -> ([[GlobToken]], directoriesOnly: Bool) {
        if bytes.first == UInt8(ascii: "!") {
            throw error(0, "'!' cannot negate a pattern here; for a name that begins with '!' write '\\!'")
        }
        var isAnchored = false
        if bytes.first == Self.slash {
            isAnchored = true
            index = 1
        }
        var segments: [[GlobToken]] = []
        var directoriesOnly = false
        while index < bytes.count {
            let segment = try parseSegment()
            // `**/**` equals `**`.
            if segment != [.anyDepth] || segments.last != segment { segments.append(segment) }
            if index < bytes.count {
                index += 1
                directoriesOnly = index == bytes.count
                if !directoriesOnly { isAnchored = true }
            }
        }
        if segments.isEmpty { throw error(0, "the pattern is empty; '**' matches every file") }
        if !isAnchored, segments.first != [.anyDepth] { segments.insert([.anyDepth], at: 0) }
        if segments.last == [.anyDepth] { segments.append([.anyBytes]) }
        if segments.count > Self.mostSegments {
            throw error(0, "the pattern has more than \(Self.mostSegments) folders; use '**'")
        }
        return (segments, directoriesOnly)
    }

    private func error(_ offset: Int, _ message: String) -> PatternError {
        PatternError(offset: offset, message: message)
    }

    private mutating func parseSegment() throws(PatternError) -> [GlobToken] {
        let start = index
        var tokens: [GlobToken] = []
        while index < bytes.count, bytes[index] != Self.slash { try tokens.append(parseToken()) }
        let written = bytes[start..<index]
        if written.elementsEqual("**".utf8) { return [.anyDepth] }
        if written.isEmpty { throw error(start, "write one slash between folders, not two") }
        if written.elementsEqual(".".utf8) || written.elementsEqual("..".utf8) {
            throw error(start, "leave out '.' and '..': paths start at the watched folder")
        }
        return tokens
    }

    private mutating func parseToken() throws(PatternError) -> GlobToken {
        let start = index
        let byte = bytes[index]
        index += 1
        switch byte {
        case 0: throw error(start, "a file name cannot contain a NUL")
        case UInt8(ascii: "*"): return .anyBytes
        case UInt8(ascii: "?"): return .anyByte
        case UInt8(ascii: "["): return try .oneOf(parseClass(openedAt: start))
        case UInt8(ascii: "\\"): return try .byte(parseEscaped(at: start))
        default: return .byte(byte)
        }
    }

    private mutating func parseEscaped(at start: Int) throws(PatternError) -> UInt8 {
        guard index < bytes.count, bytes[index] != Self.slash else {
            throw error(
                start, "a backslash must be followed by the character it protects; for a backslash write '\\\\'")
        }
        defer { index += 1 }
        return bytes[index]
    }

    private mutating func parseClass(openedAt start: Int) throws(PatternError) -> Set<UInt8> {
        var set: Set<UInt8> = []
        var isInverted = false
        if index < bytes.count, bytes[index] == UInt8(ascii: "!") || bytes[index] == UInt8(ascii: "^") {
            isInverted = true
            index += 1
        }
        let first = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "]") || index == first {
            if let named = try parseNamedClass() {
                set.formUnion(named)
                continue
            }
            let position = index
            let low = try parseClassMember()
            var high = low
            if index + 1 < bytes.count, bytes[index] == UInt8(ascii: "-"), bytes[index + 1] != UInt8(ascii: "]") {
                index += 1
                high = try parseClassMember()
            }
            guard low <= high else { throw error(position, "the range in [ ] runs backwards") }
            for byte in low...high { set.insert(byte) }
        }
        guard index < bytes.count else {
            throw error(start, "'[' is not closed by ']'; for the character itself write '\\['")
        }
        index += 1
        return isInverted ? Set(UInt8.min ... .max).subtracting(set) : set
    }

    private mutating func parseClassMember() throws(PatternError) -> UInt8 {
        let start = index
        var byte = bytes[index]
        index += 1
        if byte == UInt8(ascii: "\\") { byte = try parseEscaped(at: start) }
        if byte == Self.slash { throw error(start, "'/' is not allowed in [ ]") }
        if byte >= 0x80 {
            throw error(start, "only ASCII is allowed in [ ], because names are compared byte by byte; use '*'")
        }
        return byte
    }

    /// `[:digit:]` and the like, in ASCII.
    private mutating func parseNamedClass() throws(PatternError) -> Set<UInt8>? {
        guard bytes[index...].starts(with: "[:".utf8) else { return nil }
        let rest = bytes[(index + 2)...]
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: ":]".utf8) else {
            return nil
        }
        let name = String(decoding: rest[..<colon], as: UTF8.self)
        guard let members = Self.namedClasses[name] else {
            throw error(
                index, "unknown class '[:\(name):]'; known: \(Self.namedClasses.keys.sorted().joined(separator: ", "))")
        }
        index = colon + 2
        return Set((UInt8.min ... .max).filter(members))
    }

    private static let namedClasses: [String: @Sendable (UInt8) -> Bool] = [
        "alnum": { isLetter($0) || isDigit($0) },
        "alpha": { isLetter($0) },
        "blank": { $0 == 0x20 || $0 == 0x09 },
        "cntrl": { $0 < 0x20 || $0 == 0x7F },
        "digit": { isDigit($0) },
        "graph": { (0x21...0x7E).contains($0) && $0 != slash },
        "lower": { (0x61...0x7A).contains($0) },
        "print": { (0x20...0x7E).contains($0) && $0 != slash },
        "punct": { (0x21...0x7E).contains($0) && !isLetter($0) && !isDigit($0) },
        "space": { $0 == 0x20 || (0x09...0x0D).contains($0) },
        "upper": { (0x41...0x5A).contains($0) },
        "xdigit": { isDigit($0) || (0x41...0x46).contains($0 & 0xDF) },
    ]

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte & 0xDF) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
