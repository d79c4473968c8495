package import InletCore
package import SystemPackage

/// The content of a checksum list: one unit's files below one folder.
package struct ManifestContent: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// Below the list's folder.
        package var path: FilePath
        package var size: Int64
        /// Modification time in nanoseconds since 1970-01-01 UTC.
        package var modified: Int64
        package var digest: Digest
        /// When the digest was computed.
        package var hashedAt: WallTime
        /// Hashes of other kinds, by which earlier generations know the file.
        var others: [Digest] = []

        package init(path: FilePath, size: Int64, modified: Int64, digest: Digest, hashedAt: WallTime) {
            self.path = path
            self.size = size
            self.modified = modified
            self.digest = digest
            self.hashedAt = hashedAt
        }
    }

    package var startedAt: WallTime
    /// When the unit's last file was finished; also the list's own date, so that writing it again gives the same bytes.
    package var endedAt: WallTime
    package var host: String
    /// Inlet's.
    package var version: String
    package var entries: [Entry]
    /// Files below the folder that the list omits for lack of a checksum: readers must not take them for foreign.
    package var unlisted: [FilePath] = []
    /// Files that readers may miss: a name each, and why it has no entry.
    package var absent: [String] = []
    /// Further notes for readers, a sentence each.
    package var notes: [String] = []

    package init(startedAt: WallTime, endedAt: WallTime, host: String, version: String, entries: [Entry]) {
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.host = host
        self.version = version
        self.entries = entries
    }

    /// The date in the names of lists, `2026-11-22_120000Z`.
    package var stamp: String { Self.stamp(endedAt) }

    static func stamp(_ time: WallTime) -> String {
        let text = time.rfc3339Seconds
        return text.dropLast().map { $0 == "T" ? "_" : String($0) }.joined()
            .replacing(":", with: "") + "Z"
    }

    /// The entries that `format` can hold, each with its path as text, by path; and the notes, whose last one names the
    /// omitted files.
    func listed(_ format: ManifestRule.Format) -> (entries: [(path: String, entry: Entry)], notes: [String]) {
        var listed: [(path: String, entry: Entry)] = []
        var leftOut = absent
        for entry in entries {
            if let path = XMLText.writable(entry.path.bytes) {
                if format == .mhl, entry.size == 0 {
                    leftOut.append("\(entry.path.display) (empty)")
                } else if format == .ascmhl, Self.isReserved(entry.path) {
                    leftOut.append("\(entry.path.display) (in a folder ascmhl, which the format keeps for itself)")
                } else {
                    listed.append((path, entry))
                }
            } else {
                leftOut.append("\(entry.path.display) (its name cannot be written in XML)")
            }
        }
        listed.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
        return (listed, notes + Self.summary(leftOut))
    }

    /// Whether it is in, or is, a folder that the format keeps for histories.
    package static func isReserved(_ path: FilePath) -> Bool { path.components.contains { $0.string == "ascmhl" } }

    /// Removes the history that came with the files, from the folder `ascmhl` directly in the list's, and returns the names
    /// of its files.
    mutating func takeHistory() -> Set<String> {
        func isOfHistory(_ path: FilePath) -> Bool {
            path.components.count == 2 && path.removingLastComponent() == ManifestHistory.folderName
        }
        let names = (entries.map(\.path) + unlisted).filter(isOfHistory).compactMap { $0.lastComponent?.string }
        entries.removeAll { isOfHistory($0.path) }
        unlisted.removeAll(where: isOfHistory)
        return Set(names)
    }

    private static let mostNamed = 20

    private static func summary(_ leftOut: [String]) -> [String] {
        if leftOut.isEmpty { return [] }
        let more = leftOut.count > mostNamed ? " and \(leftOut.count - mostNamed) more" : ""
        return ["not in this list: " + leftOut.prefix(mostNamed).joined(separator: ", ") + more]
    }
}

/// ASC MHL 2.0: a list of checksums, of a history (`ascmhl/0001_….mhl` with its chain) or standing alone (a packing list).
///
/// Source: the ASC's specification and schema ASCMHL.xsd, and how its reference tool `ascmhl` reads them.
package enum MediaHashList {
    /// The document; nil when there is nothing to list, because the schema has no empty list.
    ///
    /// - Parameters:
    ///   - known: the paths in earlier generations of its history, as UTF-8: names that look alike are different files.
    ///   - name: for a list without a history, its own file name, which readers must ignore; nil for a
    ///     generation of a history.
    package static func document(
        _ content: ManifestContent, known: Set<[UInt8]> = [], alone name: String? = nil
    ) -> [UInt8]? {
        let (entries, notes) = content.listed(.ascmhl)
        if entries.isEmpty { return nil }
        var text = declaration + XMLText.opening(0, "hashlist", [("version", "2.0"), ("xmlns", "urn:ASC:MHL:v2.0")])
        text += "\n" + creator(content, notes) + process(content, name) + "  <hashes>\n"
        for (path, entry) in entries {
            text += "    <hash>\n"
            text += XMLText.element(
                3, "path",
                [
                    ("size", "\(entry.size)"),
                    ("lastmodificationdate", WallTime(nanoseconds: entry.modified).rfc3339Seconds),
                ], path)
            let action = known.contains(Array(path.utf8)) ? "verified" : "original"
            // In the schema's order, which is that of the names.
            for digest in ([entry.digest] + entry.others).sorted(by: { $0.algorithm.rawValue < $1.algorithm.rawValue })
            {
                text += XMLText.element(
                    3, digest.algorithm.rawValue, [("action", action), ("hashdate", entry.hashedAt.rfc3339)],
                    Self.text(of: digest))
            }
            text += "    </hash>\n"
        }
        return Array((text + "  </hashes>\n</hashlist>\n").utf8)
    }

    /// The program name in the lists.
    static let tool = "Inlet"

    private static let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

    private static func creator(_ content: ManifestContent, _ notes: [String]) -> String {
        var text = "  <creatorinfo>\n"
        text += XMLText.element(2, "creationdate", content.endedAt.rfc3339Seconds)
        text += XMLText.element(2, "hostname", content.host)
        text += XMLText.element(2, "tool", [("version", content.version)], tool)
        if !notes.isEmpty { text += XMLText.element(2, "comment", notes.joined(separator: "; ")) }
        return text + "  </creatorinfo>\n"
    }

    private static func process(_ content: ManifestContent, _ own: String?) -> String {
        var patterns = content.unlisted.compactMap { XMLText.writable($0.bytes) }.map(pattern)
        if let own { patterns.append(pattern(own)) }
        var text = "  <processinfo>\n" + XMLText.element(2, "process", own == nil ? "transfer" : "flatten")
        if !patterns.isEmpty {
            // A list of patterns replaces the format's defaults, so they are repeated.
            text += "    <ignore>\n"
            for pattern in [".DS_Store", "ascmhl", "ascmhl/"] + patterns.sorted() {
                text += XMLText.element(3, "pattern", pattern)
            }
            text += "    </ignore>\n"
        }
        return text + "  </processinfo>\n"
    }

    /// A file's path as a gitignore pattern. Not anchored: the reference tool compares full paths from `/`.
    private static func pattern(_ path: String) -> String {
        var escaped = "**/"
        for character in path.unicodeScalars {
            if "\\*?[] ".unicodeScalars.contains(character) { escaped += "\\" }
            escaped.unicodeScalars.append(character)
        }
        return escaped
    }

    // MARK: - The chain

    /// One generation in the chain file, with the list's name in `ascmhl/`.
    package typealias Link = (number: Int, name: String, c4: String)

    /// `ascmhl_chain.xml` with further generations: each with the C4 id of its list's bytes, oldest first. All that it has
    /// stays as it is.
    ///
    /// - Parameter old: nil for a new one.
    /// - Returns: nil where `old` does not end as a chain does.
    package static func chain(_ old: [UInt8]?, adding links: [Link]) -> [UInt8]? {
        let old = old ?? Array("\(declaration)\(XMLText.opening(0, chainElement, [chainSpace]))\n\(chainEnd)\n".utf8)
        guard let end = endOfChain(old) else { return nil }
        var text = ""
        for link in links {
            text += "\(linkStart)\(link.number)\">\n"
            text += XMLText.element(2, "path", link.name) + XMLText.element(2, "c4", link.c4) + linkEnd
        }
        return Array(old[..<end]) + Array(text.utf8) + Array(old[end...])
    }

    /// Whether `chain` is one that `matches`, with generations that were added to it since.
    static func continues(_ chain: [UInt8], _ matches: ([UInt8]) -> Bool) -> Bool {
        var chain = chain
        while let end = endOfChain(chain), chain[..<end].suffix(linkEnd.utf8.count).elementsEqual(linkEnd.utf8) {
            let starts = chain[..<end].indices.reversed()
            guard let start = starts.first(where: { chain[$0...].starts(with: linkStart.utf8) }) else { return false }
            chain.removeSubrange(start..<end)
            if matches(chain) { return true }
        }
        return false
    }

    private static let chainElement = "ascmhldirectory"
    private static let chainSpace = ("xmlns", "urn:ASC:MHL:DIRECTORY:v2.0")
    private static let chainEnd = "</ascmhldirectory>"
    private static let linkStart = "  <hashlist sequencenr=\""
    private static let linkEnd = "  </hashlist>\n"

    /// Where the end tag of a chain begins: its last tag.
    private static func endOfChain(_ chain: [UInt8]) -> Int? {
        guard let end = chain.lastIndex(of: UInt8(ascii: "<")), chain[end...].starts(with: chainEnd.utf8) else {
            return nil
        }
        return end
    }
}

// MARK: - Older lists, and the names of lists

extension MediaHashList {
    /// The Media Hash List 1.1 of 2016 (MediaHashList_v1_1.xsd): one file beside the files it lists, without a chain;
    /// nil when there is nothing to list. Omits empty files and names them: the schema has no size 0.
    package static func classic(_ content: ManifestContent) -> [UInt8]? {
        let (entries, notes) = content.listed(.mhl)
        if entries.isEmpty { return nil }
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<hashlist version=\"1.1\">\n  <creatorinfo>\n"
        text += XMLText.element(2, "username", "inlet") + XMLText.element(2, "hostname", content.host)
        text += XMLText.element(2, "tool", "Inlet \(content.version)")
        text += XMLText.element(2, "startdate", content.startedAt.rfc3339Seconds)
        text += XMLText.element(2, "finishdate", content.endedAt.rfc3339Seconds)
        if !notes.isEmpty { text += XMLText.element(2, "log", notes.joined(separator: "; ")) }
        text += "  </creatorinfo>\n"
        for (path, entry) in entries {
            text += "  <hash>\n" + XMLText.element(2, "file", path) + XMLText.element(2, "size", "\(entry.size)")
            text += XMLText.element(
                2, "lastmodificationdate", WallTime(nanoseconds: entry.modified).rfc3339Seconds)
            text += XMLText.element(2, name(of: entry.digest.algorithm), entry.digest.hex)
            text += XMLText.element(2, "hashdate", entry.hashedAt.rfc3339Seconds) + "  </hash>\n"
        }
        return Array((text + "</hashlist>\n").utf8)
    }

    private static func name(of algorithm: Digest.Algorithm) -> String {
        // The format has two byte orders; the big-endian one is commonly called XXH64.
        algorithm == .xxh64 ? "xxhash64be" : algorithm.rawValue
    }

    private static let alphabet = Array("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)
    private static let digits = 88

    /// The C4 identifier by which a history's chain file names a list.
    package static func c4(of bytes: [UInt8]) -> String { c4(C4.digest(of: bytes)) }

    /// The C4 identifier (SMPTE ST 2114): `c4` and 88 digits to base 58 of the SHA-512, taken as one big-endian number.
    static func c4(_ digest: Digest) -> String {
        var number = digest.bytes
        var text = [UInt8](repeating: alphabet[0], count: digits)
        for place in stride(from: digits - 1, through: 0, by: -1) {
            var remainder = 0
            for index in number.indices {
                let value = remainder << 8 | Int(number[index])
                number[index] = UInt8(value / 58)
                remainder = value % 58
            }
            text[place] = alphabet[remainder]
        }
        return "c4" + String(decoding: text, as: UTF8.self)
    }

    /// The digest of a C4 identifier; nil for anything else.
    static func digest(c4 text: String) -> Digest? {
        guard text.hasPrefix("c4"), text.utf8.count == digits + 2 else { return nil }
        var number = [UInt8](repeating: 0, count: Digest.Algorithm.c4.length)
        for character in text.utf8.dropFirst(2) {
            guard var carry = alphabet.firstIndex(of: character) else { return nil }
            for index in number.indices.reversed() {
                carry += Int(number[index]) * 58
                number[index] = UInt8(carry & 255)
                carry >>= 8
            }
            if carry > 0 { return nil }
        }
        return Digest(.c4, number)
    }

    /// A digest as lists write it.
    static func text(of digest: Digest) -> String { digest.algorithm == .c4 ? c4(digest) : digest.hex }
}

/// Text in XML 1.0 documents.
enum XMLText {
    /// The text of `bytes` if XML 1.0 (section 2.2) can hold it: UTF-8 without control characters but tab, line feed and
    /// carriage return, and without the two non-characters.
    static func writable(_ bytes: [UInt8]) -> String? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let isWritable = text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x9, 0xA, 0xD: true
            case 0..<0x20, 0xFFFE, 0xFFFF: false
            default: true
            }
        }
        return isWritable ? text : nil
    }

    /// The text as content of an element or an attribute. A reader turns a raw carriage return into a line feed, and both
    /// into a space in attributes; as references they stay.
    static func escape(_ text: String) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\r": result += "&#13;"
            case "\n": result += "&#10;"
            case "\t": result += "&#9;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// `<name>text</name>`, `depth` steps of two spaces in.
    static func element(_ depth: Int, _ name: String, _ attributes: [(String, String)] = [], _ text: String) -> String {
        "\(opening(depth, name, attributes))\(escape(text))</\(name)>\n"
    }

    static func opening(_ depth: Int, _ name: String, _ attributes: [(String, String)] = []) -> String {
        let list = attributes.map { " \($0.0)=\"\(escape($0.1))\"" }.joined()
        return "\(String(repeating: "  ", count: depth))<\(name)\(list)>"
    }

    static func element(_ depth: Int, _ name: String, _ text: String) -> String { element(depth, name, [], text) }
}
