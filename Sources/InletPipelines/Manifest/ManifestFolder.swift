package import InletCore
package import InletLinux
package import SystemPackage

/// Writes checksum lists into a folder. It replaces no file of anybody else, and repeating it changes nothing. Every
/// call blocks.
package struct ManifestFolder: Sendable {
    /// `isNew`: whether it was written now, rather than by an earlier attempt.
    package typealias Written = (path: FilePath, isNew: Bool)

    private let folder: FilePath

    /// - Parameter folder: must exist.
    package init(_ folder: FilePath) { self.folder = folder }

    private static let listLimit = 256 << 20
    private static let mostNames = 100
    private static let chainName: FilePath.Component = "ascmhl_chain.xml"
    private static let historyName: FilePath = "ascmhl"

    /// Writes a list without a history as `STEM.mhl`, or `STEM_2.mhl`… where that belongs to another. nil: nothing to
    /// list.
    package func writeList(
        _ content: ManifestContent, _ format: ManifestRule.Format, stem: String
    ) throws(SystemError) -> Written? {
        var number = 1
        while true {
            let name = number == 1 ? "\(stem).mhl" : "\(stem)_\(number).mhl"
            let document =
                format == .mhl
                ? MediaHashList.classic(content) : MediaHashList.document(content, alone: name)
            guard let document else { return nil }
            do throws(SystemError) {
                return try publish(document, as: name, in: try Folder(folder))
            } catch {
                number += 1
                if !error.isTaken || number > Self.mostNames { throw error }
            }
        }
    }

    /// Adds a generation to the folder's history, or begins one.
    ///
    /// - Parameters:
    ///   - name: the base of the list's file name.
    ///   - mayAppend: whether the unit has ended before, so that the history may hold a list of that end.
    /// - Returns: nil where only a list without a history is possible: the history is another's, unreadable, or records
    ///   another content of one of the files. Also nil when there is nothing to list.
    package func writeGeneration(
        _ content: ManifestContent, name: String, mayAppend: Bool
    ) throws(SystemError) -> Written? {
        if content.entries.contains(where: { ManifestContent.isReserved($0.path) }) { return nil }
        let top = try Folder(folder)
        let found = try Self.history(in: top)
        let ending = "_\(name)_\(content.stamp).mhl"
        var generations = try lists(in: found)
        let own = try earlierTry(content, generations, ending, in: found)
        if own != nil { generations.removeLast() }
        guard mayAppend || generations.isEmpty else { return nil }
        guard var history = try history(generations, in: found), !history.contradicts(content),
            generations.isEmpty || history.holdsList(of: content, name: name)
        else { return nil }
        let number = own?.number ?? (generations.last?.number ?? 0) + 1
        let listName = own?.name ?? Self.fourDigits(number) + ending
        let place = try top.folder(Self.historyName, making: 0o755)
        var written: Written = (place.path.appending(listName), false)
        if own == nil {
            guard let document = MediaHashList.document(content, known: history.paths) else { return nil }
            written = try publish(document, as: listName, in: place)
            Failpoint.generationWritten.reached()
        }
        history.link(number, listName, try Self.read(listName, in: place))
        let chain = MediaHashList.chain(history.links)
        // An unreadable list is written again, which reports the fault.
        if !Self.holds(chain, Self.chainName, in: place) {
            try place.write(chain, to: Self.chainName, mode: 0o644)
            written.isNew = true
        }
        return written
    }

    /// The last generation where it already has the content to write: an earlier attempt of ours may not have reached
    /// the chain. A unit may end twice within the second that names have.
    private func earlierTry(
        _ content: ManifestContent, _ generations: [(number: Int, name: String)], _ ending: String, in place: Folder?
    ) throws(SystemError) -> (number: Int, name: String)? {
        guard let place, let last = generations.last, last.name.hasSuffix(ending) else { return nil }
        var said = ManifestHistory()
        let bytes = try Self.read(last.name, in: place)
        // This list cannot be a repetition of an unreadable one.
        let isRead = said.add(generation: bytes, called: last.name)
        let paths = Set(content.listed(.ascmhl).entries.map { Array($0.path.utf8) })
        return isRead && said.paths == paths && !said.contradicts(content) ? last : nil
    }

    /// Gets its name only when complete. `isTaken` when the name exists.
    private func publish(_ document: [UInt8], as text: String, in folder: Folder) throws(SystemError) -> Written {
        let path = folder.path.appending(text)
        guard let name = FilePath.Component(text), let draft = FilePath.Component(".\(text).tmp") else {
            throw SystemError(call: "create", path: path, code: .invalidArgument)
        }
        if case .missing = try folder.look(name) {
            // Left by a killed attempt: verifiers would take it for a new file.
            FileCopy.removeLeftovers(of: draft, in: folder)
            try folder.write(document, to: draft, mode: 0o644)
            try folder.rename(draft, to: folder, name)
            try folder.synchronize()
            return (path, true)
        }
        guard Self.holds(document, name, in: folder) else {
            throw SystemError(call: "create", path: path, code: .fileExists)
        }
        return (path, false)
    }

    /// Whether the file has these bytes.
    private static func holds(_ bytes: [UInt8], _ name: FilePath.Component, in folder: Folder) -> Bool {
        // An unreadable file counts as another.
        (try? folder.read(name, limit: bytes.count)) == bytes
    }

    /// The history's folder; nil where there is none. Follows no symlink.
    private static func history(in top: Folder) throws(SystemError) -> Folder? {
        do throws(SystemError) {
            return try top.folder(historyName)
        } catch  where error.code == .noSuchFileOrDirectory {
            return nil
        }
    }

    private static func read(_ name: String, in place: Folder) throws(SystemError) -> [UInt8] {
        guard let name = FilePath.Component(name) else {
            throw SystemError(call: "open", path: place.path, code: .invalidArgument)
        }
        return try place.read(name, limit: listLimit)
    }

    /// The generations in a history's folder, oldest first.
    private func lists(in place: Folder?) throws(SystemError) -> [(number: Int, name: String)] {
        var found: [(number: Int, name: String)] = []
        guard let place else { return [] }
        var stream = try place.list()
        while let entry = try stream.next() {
            let name = entry.name.string
            if let number = ManifestHistory.number(of: name) { found.append((number, name)) }
        }
        return found.sorted { $0.number < $1.number }
    }

    /// nil for an unreadable history.
    private func history(
        _ generations: [(number: Int, name: String)], in place: Folder?
    ) throws(SystemError) -> ManifestHistory? {
        var history = ManifestHistory()
        guard let place else { return history }
        if try place.look(Self.chainName) != .missing {
            let bytes = try place.read(Self.chainName, limit: Self.listLimit)
            // An unreadable history cannot be continued.
            guard history.add(chain: bytes) else { return nil }
        }
        for (number, name) in generations {
            let bytes = try Self.read(name, in: place)
            // As above.
            guard history.add(generation: bytes, called: name) else { return nil }
            history.link(number, name, bytes)
        }
        return history
    }

    private static func fourDigits(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

/// An ASC MHL history in a folder, which a further generation must continue.
struct ManifestHistory: Sendable {
    /// Earlier generations' records of a file: its digests in hexadecimal, by algorithm; the first of each counts, as
    /// for the reference tool.
    private(set) var files: [[UInt8]: [String: String]] = [:]
    private(set) var links: [MediaHashList.Link] = []
    /// The program that wrote a list, by the list's name.
    private var tools: [String: String] = [:]

    /// 300,000 files in three elements each.
    private static let mostElements = 1_000_000

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
        guard let list = XMLElement(bytes, most: Self.mostElements), list.name == "hashlist" else { return false }
        tools[name] = list.children.first { $0.name == "creatorinfo" }?.text(of: "tool")
        for hash in list.children.first(where: { $0.name == "hashes" })?.all("hash") ?? [] {
            guard let path = hash.text(of: "path") else { return false }
            for digest in hash.children where digest.name != "path" {
                let key = Array(path.utf8)
                files[key, default: [:]][digest.name] = files[key]?[digest.name] ?? digest.text
            }
        }
        return true
    }

    /// Reads the chain file's entries. - Returns: false for anything but a chain.
    mutating func add(chain bytes: [UInt8]) -> Bool {
        guard let chain = XMLElement(bytes), chain.name == "ascmhldirectory" else { return false }
        for link in chain.all("hashlist") {
            guard let name = link.text(of: "path"), let c4 = link.text(of: "c4"), let number = Self.number(of: name)
            else { return false }
            links.append((number, name, c4))
        }
        return true
    }

    /// Adds an existing list to the chain, unless the chain has it.
    mutating func link(_ number: Int, _ name: String, _ bytes: [UInt8]) {
        if links.contains(where: { $0.name == name }) { return }
        links.append((number, name, MediaHashList.c4(of: bytes)))
    }

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

    /// Whether a file in it has another content now: the first record of a path stands for ever.
    func contradicts(_ content: ManifestContent) -> Bool {
        content.entries.contains { entry in
            files[entry.path.bytes]?[entry.digest.algorithm.rawValue].map { $0 != entry.digest.hex } ?? false
        }
    }
}
