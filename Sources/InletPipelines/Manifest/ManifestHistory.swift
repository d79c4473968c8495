internal import InletCore

/// An ASC MHL history as it stands in a folder: what a further generation must go with.
struct ManifestHistory: Sendable, Equatable {
    /// What earlier generations say of a file: its digests in hexadecimal, by the names of their algorithms; the first
    /// of each counts, as for the reference tool.
    private(set) var files: [[UInt8]: [String: String]] = [:]
    private(set) var links: [MediaHashList.Link] = []
    /// The program that wrote a list, by the list's name.
    private var tools: [String: String] = [:]

    /// 300,000 files in three elements each.
    private static let mostElements = 1_000_000

    var paths: Set<[UInt8]> { Set(files.keys) }

    /// The number that a list's name begins with, by the reference tool's rule: four digits or more, then `_` or the end.
    /// nil for what is not a generation.
    static func number(of name: String) -> Int? {
        guard name.hasSuffix(".mhl"), !name.hasPrefix("._"), !name.contains("/") else { return nil }
        let digits = name.dropLast(4).prefix { $0.isASCII && $0.isNumber }
        let rest = name.dropLast(4).dropFirst(digits.count)
        return digits.count >= 4 && (rest.isEmpty || rest.hasPrefix("_") && rest.count > 1) ? Int(digits) : nil
    }

    /// Adds a generation, oldest first. - Throws: `XMLReader.Fault` for what is not a list.
    mutating func add(generation bytes: [UInt8], called name: String) throws(XMLReader.Fault) {
        let list = try XMLReader.read(bytes, most: Self.mostElements)
        guard list.name == "hashlist" else { throw .malformed }
        tools[name] = list.children.first { $0.name == "creatorinfo" }?.text(of: "tool")
        for hash in list.children.first(where: { $0.name == "hashes" })?.all("hash") ?? [] {
            guard let path = hash.text(of: "path") else { throw .malformed }
            for digest in hash.children where digest.name != "path" {
                let key = Array(path.utf8)
                files[key, default: [:]][digest.name] = files[key]?[digest.name] ?? digest.text
            }
        }
    }

    /// Takes the chain file's entries. - Throws: `XMLReader.Fault` for what is not a chain.
    mutating func add(chain bytes: [UInt8]) throws(XMLReader.Fault) {
        let chain = try XMLReader.read(bytes)
        guard chain.name == "ascmhldirectory" else { throw .malformed }
        for link in chain.all("hashlist") {
            guard let name = link.text(of: "path"), let c4 = link.text(of: "c4"), let number = Self.number(of: name)
            else { throw .malformed }
            links.append(MediaHashList.Link(number: number, name: name, c4: c4))
        }
    }

    /// Puts a list that is there in the chain, unless the chain has it.
    mutating func link(_ number: Int, _ name: String, _ bytes: [UInt8]) {
        if links.contains(where: { $0.name == name }) { return }
        links.append(MediaHashList.Link(number: number, name: name, c4: C4.id(of: bytes)))
    }

    /// Whether an earlier end of the same unit wrote one of its lists: called after `name`, and since the unit began. The
    /// reference tool, too, calls its lists after the folder.
    func holdsList(of content: ManifestContent, name: String) -> Bool {
        let ours = "_\(name)_"
        let began = ManifestContent.stamp(content.startedAt)
        let times = began...max(began, content.stamp)
        return tools.contains { list, tool in
            let rest = list.drop { $0 != "_" }
            guard tool == MediaHashList.tool, rest.hasPrefix(ours), rest.hasSuffix(".mhl") else { return false }
            return times.contains(String(rest.dropFirst(ours.count).dropLast(4)))
        }
    }

    /// Whether a file that it knows has another content now: the first record of a path stands for ever.
    func contradicts(_ content: ManifestContent) -> Bool {
        content.entries.contains { entry in
            files[entry.path.bytes]?[entry.digest.algorithm.rawValue].map { $0 != entry.digest.hex } ?? false
        }
    }
}
