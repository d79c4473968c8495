internal import InletCore
internal import InletLinux
internal import SystemPackage

/// An ASC MHL history in a folder: its generations, and the chain that holds them together.
struct ManifestHistory: Sendable {
    /// A list in `ascmhl/`.
    typealias Generation = (number: Int, name: String)
    /// What all generations have about a file: the first hash of each kind stands for ever, as for the reference tool.
    typealias Known = (size: Int64?, hashes: [ListedHash])

    static let folderName: FilePath = "ascmhl"
    static let chainName: FilePath.Component = "ascmhl_chain.xml"

    /// By their paths as UTF-8: names that look alike are different files.
    private(set) var files: [[UInt8]: Known] = [:]
    private(set) var links: [MediaHashList.Link] = []
    /// The chain file's bytes; nil where there is none.
    private(set) var chain: [UInt8]?
    /// The program that wrote a list, by the list's name.
    private var tools: [String: String] = [:]

    var paths: Set<[UInt8]> { Set(files.keys) }

    /// The number at the start of a list's name, by the reference tool's rule: four digits or more, then `_` or the
    /// end. nil for other names.
    static func number(of name: String) -> Int? {
        guard name.hasSuffix(".mhl"), !name.hasPrefix("._"), !name.contains("/") else { return nil }
        let digits = name.dropLast(4).prefix { $0.isASCII && $0.isNumber }
        let rest = name.dropLast(4).dropFirst(digits.count)
        return digits.count >= 4 && (rest.isEmpty || rest.hasPrefix("_") && rest.count > 1) ? Int(digits) : nil
    }

    /// Adds a generation, oldest first. - Returns: false for anything but a list.
    mutating func add(generation bytes: [UInt8], called name: String) -> Bool {
        guard let list = HashList(bytes) else { return false }
        tools[name] = list.tool
        for file in list.files {
            let key = Array(file.path.utf8)
            // A renamed file keeps its hashes.
            let earlier = file.previousPath.flatMap { files.removeValue(forKey: Array($0.utf8)) }
            var known = files[key] ?? earlier ?? (file.size, [])
            known.size = known.size ?? file.size
            for hash in file.hashes where !known.hashes.contains(where: { $0.name == hash.name }) {
                known.hashes.append(hash)
            }
            files[key] = known
        }
        return true
    }

    /// Reads the chain file's entries. - Returns: false for anything but a chain.
    mutating func add(chain bytes: [UInt8]) -> Bool {
        guard let root = XMLElement(bytes), root.name == "ascmhldirectory" else { return false }
        for link in root.all("hashlist") {
            guard let name = link.text(of: "path"), let c4 = link.text(of: "c4"), let number = Self.number(of: name)
            else { return false }
            links.append((number, name, c4))
        }
        chain = bytes
        return true
    }

    // MARK: - In a folder

    /// The generations in a history's folder, oldest first.
    static func generations(in place: Folder) throws(SystemError) -> [Generation] {
        var found: [Generation] = []
        var stream = try place.list()
        while let entry = try stream.next() {
            let name = entry.name.string
            if let number = number(of: name) { found.append((number, name)) }
        }
        return found.sorted { ($0.number, $0.name) < ($1.number, $1.name) }
    }

    static func read(_ name: String, in place: Folder, limit: Int) throws(SystemError) -> [UInt8] {
        guard let name = FilePath.Component(name) else {
            throw SystemError(call: "open", path: place.path, code: .invalidArgument)
        }
        return try place.read(name, limit: limit)
    }

    /// Reads a history, and checks that it is whole: each list is in the chain, and each list of the chain is there,
    /// unchanged. Blocks.
    ///
    /// - Parameters:
    ///   - generations: all lists in the folder.
    ///   - own: one that does not count: its writer may have died before it was in the chain.
    /// - Returns: also what is wrong with the history, as the end of a sentence about it.
    static func read(
        _ generations: [Generation], but own: String?, in place: Folder, limit: Int
    ) throws(SystemError) -> (history: ManifestHistory, fault: String?) {
        var history = ManifestHistory()
        func faulty(_ fault: String) -> (ManifestHistory, String?) { (history, fault) }
        let counted = generations.filter { $0.name != own }
        if try place.look(chainName) == .missing {
            return (history, counted.isEmpty ? nil : "it has no \(chainName.string)")
        }
        guard history.add(chain: try place.read(chainName, limit: limit)) else {
            return faulty("its \(chainName.string) cannot be read")
        }
        for link in history.links where !generations.contains(where: { $0.name == link.name }) {
            return faulty("its list \(DisplayText.escape(link.name)) is missing")
        }
        for (index, generation) in counted.enumerated() {
            let name = DisplayText.escape(generation.name)
            guard generation.number == index + 1 else {
                return faulty("it has \(name) where its generation \(index + 1) belongs")
            }
            guard let link = history.links.first(where: { $0.name == generation.name }) else {
                return faulty("its list \(name) is not in \(chainName.string)")
            }
            let bytes = try read(generation.name, in: place, limit: limit)
            guard link.c4 == MediaHashList.c4(of: bytes) else {
                return faulty("its list \(name) is not the one in \(chainName.string)")
            }
            guard history.add(generation: bytes, called: generation.name) else {
                return faulty("its list \(name) cannot be read")
            }
        }
        return (history, nil)
    }

    // MARK: - Against a unit's files

    /// Whether an earlier end of the same unit wrote one of its lists: named after `name`, and since the unit began.
    /// The reference tool also names its lists after the folder.
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

    /// The first file that has another content now; nil if there is none.
    func contradiction(of content: ManifestContent) -> FilePath? {
        content.entries.first { entry in
            guard let known = files[entry.path.bytes] else { return false }
            if let size = known.size, size != entry.size { return true }
            return known.hashes.contains { hash in
                hash.digest.map { $0.algorithm == entry.digest.algorithm && $0 != entry.digest } ?? false
            }
        }?.path
    }

    /// The files that it lists and `content` lacks.
    func missing(in content: ManifestContent) -> [String] {
        let there = Set(content.entries.map(\.path.bytes) + content.unlisted.map(\.bytes))
        return files.keys.filter { !there.contains($0) }.map { DisplayText.escape($0) }.sorted()
    }

    /// A hash to compare `entry` with before it gets one of a kind that the history does not have of it; nil where that
    /// is not needed. The standard wants each new kind beside a known one that was verified.
    func unverified(_ entry: ManifestContent.Entry) -> (kinds: String, digest: Digest?)? {
        guard let hashes = files[entry.path.bytes]?.hashes, !hashes.isEmpty,
            !hashes.contains(where: { $0.digest?.algorithm == entry.digest.algorithm })
        else { return nil }
        return (
            hashes.map { DisplayText.escape($0.name.utf8) }.joined(separator: ", "),
            hashes.lazy.compactMap(\.digest).first
        )
    }
}
