package import InletCore
internal import InletLinux
package import SystemPackage

/// A checksum list that came with a card: a classic MHL, an ASC MHL list without a history, or a whole history.
package struct SourceManifest: Sendable {
    package struct Entry: Sendable, Equatable {
        /// Below the volume's top, as the list spells it: compare it as text, because programs write names in other normal
        /// forms than file systems.
        package var path: FilePath
        /// nil where the list does not say it.
        package var size: Int64?
        package var listed: ListedDigests

        /// The strongest listed that Inlet can compute.
        package var digest: Digest { listed.all[0] }
    }

    package typealias Fault = (path: FilePath, reason: String)

    /// The list's file below the top; of a history, its newest.
    package var place: FilePath
    /// The files that have a hash, by path. Of a history, all that its generations have.
    package var entries: [Entry]

    /// The lists on a volume: files `*.mhl`, and histories in folders `ascmhl`, at its top and in the first two levels of
    /// folders. Limits what it reads, and follows no symlink. A list that is damaged, incomplete or not to be used is a
    /// fault. Blocks.
    package static func all(on top: FilePath) -> (lists: [SourceManifest], faults: [Fault]) {
        var search = ManifestSearch()
        search.run(top)
        return (search.lists, search.faults)
    }
}

extension SourceManifest {
    typealias Listed = (path: String, size: Int64?, hashes: [ListedHash])

    /// A list of these files, whose paths are below the folder of `place`, or of its history; or why it is not used.
    static func made(of files: [Listed], at place: FilePath) -> (list: SourceManifest?, fault: String?) {
        var folder = place.removingLastComponent()
        if folder.lastComponent?.string == ManifestHistory.folderName.string { folder.removeLastComponent() }
        var entries: [Entry] = []
        var others: Set<String> = []
        for file in files {
            let path = FilePath(file.path)
            guard !file.path.utf8.contains(0), !path.isEmpty, path.isRelative,
                path.components.allSatisfy({ $0.kind == .regular })
            else { return (nil, "it lists '\(DisplayText.escape(file.path))', which is not a path below its folder") }
            if let listed = ListedDigests(file.hashes) {
                entries.append(Entry(path: folder.pushing(path), size: file.size, listed: listed))
            } else {
                others.formUnion(file.hashes.map(\.name))
            }
        }
        guard entries.isEmpty else {
            entries.sort { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }
            return (SourceManifest(place: place, entries: entries), nil)
        }
        let kinds = others.sorted().prefix(5).map { DisplayText.escape($0) }.joined(separator: ", ")
        return (nil, kinds.isEmpty ? "it lists no hash" : "it has only \(kinds) hashes, which Inlet does not compute")
    }
}

/// Compares files with a card's lists.
package enum ManifestCheck {
    package enum Judgement: Sendable, Equatable {
        case same
        /// It is not the listed content; the text is a sentence for people.
        case differs(String)
        /// None of the listed hashes is known of the file: compute this one.
        case needsRead(Digest.Algorithm)
    }

    /// Compares one file, whose digests may be known already, with its entry in a list.
    ///
    /// - Parameters:
    ///   - size: the file's.
    ///   - digests: those known of its whole content, as read from the card.
    package static func judge(_ entry: SourceManifest.Entry, size: Int64, digests: [Digest]) -> Judgement {
        if let listed = entry.size, listed != size {
            return .differs("the list has \(listed) bytes, and the file has \(size)")
        }
        guard let compared = entry.listed.areSame(as: digests) else { return .needsRead(entry.digest.algorithm) }
        if compared.isSame { return .same }
        let (listed, found) = (MediaHashList.text(of: compared.listed), MediaHashList.text(of: compared.found))
        return .differs("the list has \(compared.listed.algorithm.rawValue) \(listed), and the file has \(found)")
    }
}

/// Finds and reads the lists of one volume.
private struct ManifestSearch {
    private(set) var lists: [SourceManifest] = []
    private(set) var faults: [SourceManifest.Fault] = []

    /// A list of 100,000 files has some 30 MiB.
    private static let listLimit = 64 << 20
    /// All lists together: a card that somebody prepared must not hold up others.
    private static let totalLimit = 256 << 20
    private static let mostLists = 100
    private static let mostFolders = 1000
    private static let mostNames = 200_000
    private static let levels = 2
    private static let ignored = IgnoreList()

    private var read = 0
    private var names = 0
    private var isFull = false

    mutating func run(_ path: FilePath) {
        let top: Folder
        do throws(SystemError) {
            top = try Folder(path)
        } catch {
            return faults.append(("", "the volume cannot be read: \(error)"))
        }
        // Level by level, so that what is left out lies deep.
        var (open, next) = ([FilePath("")], 0)
        while next < open.count, !isFull {
            let folder = open[next]
            next += 1
            let isDeepest = folder.components.count >= Self.levels
            for (path, kind) in listing(folder, in: top) {
                if kind == .directory, path.lastComponent?.string == ManifestHistory.folderName.string {
                    history(path, in: top)
                } else if kind == .directory, !isDeepest {
                    guard open.count < Self.mostFolders else { return stop("more than \(Self.mostFolders) folders") }
                    open.append(path)
                } else if kind == .regular, path.extension?.lowercased() == "mhl" {
                    list(path, in: top)
                }
                if isFull { return }
            }
        }
    }

    private mutating func stop(_ what: String) {
        isFull = true
        faults.append(("", "it has \(what): further checksum lists were not looked for"))
    }

    /// The names in a folder that may matter, in order.
    private mutating func listing(_ folder: FilePath, in top: Folder) -> [(path: FilePath, kind: DirectoryEntry.Kind)] {
        var found: [(path: FilePath, kind: DirectoryEntry.Kind)] = []
        do throws(SystemError) {
            var stream = try top.folder(folder).list()
            while let entry = try stream.next() {
                names += 1
                if names > Self.mostNames {
                    stop("more than \(Self.mostNames) names")
                    break
                }
                let path = folder.appending(entry.name)
                if Self.ignored.ignoresName(path, isDirectory: entry.kind == .directory) { continue }
                if entry.kind == .directory || entry.kind == .regular { found.append((path, entry.kind)) }
            }
        } catch {
            // A folder that cannot be listed has no list that could be used. Its files are unreadable, too.
            if folder.isEmpty { faults.append((folder, "\(error)")) }
        }
        return found.sorted { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }
    }

    /// Whether another list of `size` bytes may be read.
    private mutating func hasRoom(for size: Int) -> Bool {
        read += size
        if lists.count >= Self.mostLists {
            stop("more than \(Self.mostLists) checksum lists")
        } else if read > Self.totalLimit {
            stop("checksum lists of more than \(ByteText.format(Int64(Self.totalLimit)))")
        }
        return !isFull
    }

    // MARK: - One list

    private mutating func list(_ path: FilePath, in top: Folder) {
        guard let name = path.lastComponent else { return }
        do throws(SystemError) {
            let bytes = try top.folder(path.removingLastComponent()).read(name, limit: Self.listLimit)
            guard hasRoom(for: bytes.count) else { return }
            guard let list = HashList(bytes) else {
                return faults.append((path, "it is damaged, or no checksum list"))
            }
            add(list.files.map { ($0.path, $0.size, $0.hashes) }, path)
        } catch {
            faults.append((path, "it cannot be read: \(error)"))
        }
    }

    private mutating func history(_ path: FilePath, in top: Folder) {
        do throws(SystemError) {
            let place = try top.folder(path)
            let generations = try ManifestHistory.generations(in: place)
            guard generations.count <= Self.mostLists else {
                return faults.append((path, "it has more than \(Self.mostLists) generations"))
            }
            for generation in generations {
                let look = try FilePath.Component(generation.name).map { (name) throws(SystemError) in
                    try place.look(name)
                }
                guard hasRoom(for: Int(clamping: look?.identity?.size ?? 0)) else { return }
            }
            let (history, fault) = try ManifestHistory.read(generations, but: nil, in: place, limit: Self.listLimit)
            if let fault { return faults.append((path, fault)) }
            guard let newest = generations.last else { return }
            let files = history.files.map { (String(decoding: $0.key, as: UTF8.self), $0.value.size, $0.value.hashes) }
            add(files, path.appending(newest.name))
        } catch {
            faults.append((path, "it cannot be read: \(error)"))
        }
    }

    private mutating func add(_ files: [SourceManifest.Listed], _ place: FilePath) {
        let (list, fault) = SourceManifest.made(of: files, at: place)
        if let list { lists.append(list) }
        if let fault { faults.append((place, fault)) }
    }
}
