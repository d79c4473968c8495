package import InletCore
internal import SystemPackage

/// A checksum list as a program wrote it: ASC MHL 2.0, or the classic Media Hash List of any version.
struct HashList: Sendable {
    struct File: Sendable {
        /// Below the list's folder, or below the folder of its history; `/` between names.
        var path: String
        /// Where an earlier generation has the file.
        var previousPath: String?
        var size: Int64?
        /// In the list's order, failed ones left out.
        var hashes: [ListedHash]
    }

    /// The program that wrote it.
    private(set) var tool: String?
    private(set) var files: [File] = []

    /// 300,000 files in three elements each.
    private static let mostElements = 1_000_000

    /// nil for anything but a list, and for a damaged one.
    init?(_ bytes: [UInt8]) {
        guard let root = XMLElement(bytes, most: Self.mostElements), root.name == "hashlist" else { return nil }
        tool = root.children.first { $0.name == "creatorinfo" }?.text(of: "tool")
        // ASC MHL has a level more, and calls a file's path `path`.
        let hashes = root.children.first { $0.name == "hashes" }
        for hash in (hashes ?? root).all("hash") {
            guard let file = hashes == nil ? Self.classic(hash) : Self.current(hash) else { return nil }
            files.append(file)
        }
    }

    private static func current(_ hash: XMLElement) -> File? {
        guard let path = hash.children.first(where: { $0.name == "path" }), !path.text.isEmpty else { return nil }
        var file = File(path: path.text, size: path.attributes["size"].flatMap { Int64($0) }, hashes: [])
        file.previousPath = hash.text(of: "previousPath")
        for child in hash.children where !["path", "previousPath", "metadata"].contains(child.name) {
            // The digest of another content than the file's.
            if child.attributes["action"] == "failed" { continue }
            guard let listed = ListedHash(child.name, child.text) else { return nil }
            file.hashes.append(listed)
        }
        return file
    }

    private static func classic(_ hash: XMLElement) -> File? {
        guard let name = hash.text(of: "file"), !name.isEmpty else { return nil }
        // Written on Windows. No camera and no offload tool has a backslash in a name.
        let path = String(name.map { $0 == "\\" ? "/" : $0 })
        var file = File(path: path, size: hash.integer("size"), hashes: [])
        for child in hash.children where !others.contains(child.name) {
            guard let listed = ListedHash(classic: child.name, child.text) else { return nil }
            file.hashes.append(listed)
        }
        return file
    }

    /// What a classic list has about a file besides hashes. `null` says that only the size counts.
    private static let others: Set<String> = [
        "file", "size", "creationdate", "lastmodificationdate", "hashdate", "null", "metadata", "name",
    ]
}

/// A hash of a list.
struct ListedHash: Sendable, Equatable {
    /// The list's name for the algorithm.
    var name: String
    /// nil where Inlet does not compute such hashes.
    var digest: Digest?
    /// Whether programs disagree about the order of its bytes.
    var isEitherOrder = false

    /// The algorithms of ASC MHL that Inlet computes; the names are the same. SHA-256 is an extension.
    private static let current: [Digest.Algorithm] = [.md5, .sha1, .sha256, .xxh64, .xxh3, .xxh128, .c4]

    /// A hash of ASC MHL; nil for a malformed one.
    init?(_ name: String, _ text: String) {
        self.name = name
        guard let algorithm = Digest.Algorithm(rawValue: name), Self.current.contains(algorithm) else { return }
        guard let digest = Self.digest(algorithm, text) else { return nil }
        self.digest = digest
    }

    /// A hash of a classic list; nil for a malformed one.
    init?(classic name: String, _ text: String) {
        let digits = text.filter { !$0.isWhitespace }
        switch name {
        case "xxhash64be": self.init("xxh64", text)
        case "xxhash64", "xxhash":
            // `xxhash64` is little-endian by the format's schema, and big-endian in the lists of several programs.
            // `xxhash` is a decimal XXH32, or another name of the same.
            let isShort = name == "xxhash" && digits.utf8.count <= 10 && digits.allSatisfy(\.isNumber)
            self.init(isShort ? name : "xxh64", text)
            isEitherOrder = !isShort
        case "xxhash128": self.init("xxh128", text)
        case "xxhash3_64": self.init("xxh3", text)
        default: self.init(name, text)
        }
        self.name = name
    }

    private static func digest(_ algorithm: Digest.Algorithm, _ text: String) -> Digest? {
        let text = text.filter { !$0.isWhitespace }
        let digest = algorithm == .c4 ? MediaHashList.digest(c4: text) : Digest(algorithm, hex: text)
        return digest?.bytes.count == algorithm.length ? digest : nil
    }
}

/// What is known of a file whose list has several hashes.
package struct ListedDigests: Sendable, Equatable {
    /// Of different algorithms, the strongest first; never empty.
    package private(set) var all: [Digest]
    /// Whether an XXH64 among them may be in the reverse order.
    private(set) var isEitherOrder: Bool

    private static let strongest: [Digest.Algorithm] = [.c4, .sha256, .sha1, .md5, .xxh128, .xxh3, .xxh64]

    /// nil where Inlet computes none of them.
    init?(_ hashes: [ListedHash]) {
        let known = hashes.compactMap(\.digest)
        all = Self.strongest.compactMap { algorithm in known.first { $0.algorithm == algorithm } }
        isEitherOrder = hashes.first { $0.digest?.algorithm == .xxh64 }?.isEitherOrder ?? false
        if all.isEmpty { return nil }
    }

    /// Whether the content with `digests` is the listed one; nil where none of them can be compared.
    func areSame(as digests: [Digest]) -> (isSame: Bool, listed: Digest, found: Digest)? {
        var same: (isSame: Bool, listed: Digest, found: Digest)?
        for listed in all {
            guard let found = digests.first(where: { $0.algorithm == listed.algorithm }) else { continue }
            let isReversed = isEitherOrder && listed.algorithm == .xxh64 && found.bytes.reversed() == listed.bytes
            guard found == listed || isReversed else { return (false, listed, found) }
            same = same ?? (true, listed, found)
        }
        return same
    }
}
