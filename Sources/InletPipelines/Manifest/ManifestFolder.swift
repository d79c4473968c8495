package import InletCore
package import InletLinux
internal import InletTransfer
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

    /// What became of a unit's generation.
    package enum Generation: Sendable {
        case written(Written)
        /// Only a list without a history is possible, for this reason: the end of a sentence about the folder's history.
        case refused(String)
    }

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

    /// Adds a generation to the folder's history, or begins one. A history that came with the unit's files (`content` has
    /// its lists) is continued if it is whole, lists no file that is not here, and agrees with the others. Reads files whose
    /// earlier hashes are of another kind.
    ///
    /// - Parameters:
    ///   - name: the base of the list's file name.
    ///   - mayAppend: whether the unit has ended before, so that the history may hold a list of that end.
    package func writeGeneration(
        _ content: ManifestContent, name: String, mayAppend: Bool
    ) throws(SystemError) -> Generation {
        var content = content
        let carried = content.takeHistory()
        if let inner = content.entries.first(where: { ManifestContent.isReserved($0.path) }) {
            return .refused("another history lies deeper, at \(inner.path.removingLastComponent().display)")
        }
        let top = try Folder(folder)
        let found = try Self.history(in: top)
        let ending = "_\(name)_\(content.stamp).mhl"
        let generations =
            try found.map { (place) throws(SystemError) in try ManifestHistory.generations(in: place) } ?? []
        let own = try earlierTry(content, generations.filter { !carried.contains($0.name) }, ending, in: found)
        let earlier = generations.filter { $0.name != own?.name }
        var history = ManifestHistory()
        if let found {
            let read = try ManifestHistory.read(generations, but: own?.name, in: found, limit: Self.listLimit)
            if let fault = read.fault { return .refused(fault) }
            history = read.history
        }
        // An earlier end's list of this unit makes a history ours, and those that came with the files make it theirs.
        let isOurs = earlier.isEmpty || mayAppend && history.holdsList(of: content, name: name)
        guard isOurs || earlier.allSatisfy({ carried.contains($0.name) }) else {
            return .refused("it belongs to something else than this unit")
        }
        if let reason = try objection(to: &content, history, isCarried: !carried.isEmpty) { return .refused(reason) }
        let number = own?.number ?? (earlier.last?.number ?? 0) + 1
        let listName = own?.name ?? Self.fourDigits(number) + ending
        guard let document = MediaHashList.document(content, known: history.paths),
            MediaHashList.chain(history.chain, adding: []) != nil
        else { return .refused("nothing can be added to it") }
        let place = try top.folder(ManifestHistory.folderName, making: 0o755)
        var written: Written = (place.path.appending(listName), false)
        if own == nil {
            written = try publish(document, as: listName, in: place)
            Failpoint.generationWritten.reached()
        }
        if history.links.contains(where: { $0.name == listName }) { return .written(written) }
        let bytes = try ManifestHistory.read(listName, in: place, limit: Self.listLimit)
        let link = (number, listName, MediaHashList.c4(of: bytes))
        if let chain = MediaHashList.chain(history.chain, adding: [link]) {
            try place.write(chain, to: ManifestHistory.chainName, mode: 0o644)
            written.isNew = true
        }
        return .written(written)
    }

    /// Why the history cannot go on with `content`; else nil, and `content` has what a generation must verify besides.
    private func objection(
        to content: inout ManifestContent, _ history: ManifestHistory, isCarried: Bool
    ) throws(SystemError) -> String? {
        func differs(_ path: FilePath) -> String { "it has another checksum or size of \(path.display)" }
        if let path = history.contradiction(of: content) { return differs(path) }
        let missing = isCarried ? history.missing(in: content) : []
        if let first = missing.first {
            return missing.count == 1
                ? "it lists \(first), which is not here"
                : "it lists \(missing.count) files that are not here, as \(first)"
        }
        for (index, entry) in content.entries.enumerated() {
            guard let (kinds, listed) = history.unverified(entry) else { continue }
            guard let listed else {
                return "it has only \(kinds) hashes of \(entry.path.display), which Inlet does not compute"
            }
            guard try sum(listed.algorithm, of: entry.path) == listed else { return differs(entry.path) }
            content.entries[index].others = [listed]
        }
        return nil
    }

    /// A checksum of a file below the folder, read past the page cache.
    private func sum(_ algorithm: Digest.Algorithm, of path: FilePath) throws(SystemError) -> Digest? {
        let (place, name) = try RootedPath(folder, path).parent()
        var hasher = SliceHasher([algorithm])
        var reader = try UncachedReader.open(name, in: place)
        while try reader.next({ hasher.update($0) }) {
            if Task.isCancelled { throw SystemError(call: "read", path: folder.pushing(path), code: .canceled) }
        }
        return hasher.finish()[algorithm]
    }

    /// The last generation where it already has the content to write: an earlier attempt of ours may not have reached
    /// the chain. A unit may end twice within the second that names have.
    private func earlierTry(
        _ content: ManifestContent, _ generations: [ManifestHistory.Generation], _ ending: String, in place: Folder?
    ) throws(SystemError) -> ManifestHistory.Generation? {
        guard let place, let last = generations.last, last.name.hasSuffix(ending) else { return nil }
        var said = ManifestHistory()
        let bytes = try ManifestHistory.read(last.name, in: place, limit: Self.listLimit)
        // This list cannot be a repetition of an unreadable one.
        let isRead = said.add(generation: bytes, called: last.name)
        let paths = Set(content.listed(.ascmhl).entries.map { Array($0.path.utf8) })
        return isRead && said.paths == paths && said.contradiction(of: content) == nil ? last : nil
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
            return try top.folder(ManifestHistory.folderName)
        } catch  where error.code == .noSuchFileOrDirectory {
            return nil
        }
    }

    private static func fourDigits(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    // MARK: - A history that was delivered

    private static let chainLimit = 1 << 20

    /// Whether `path` is where a history's chain file belongs.
    static func isChain(_ path: FilePath) -> Bool {
        path.lastComponent == ManifestHistory.chainName
            && path.removingLastComponent().lastComponent?.string == ManifestHistory.folderName.string
    }

    /// Whether the chain file at `path` is one that `matches`, with generations that were added since.
    static func continues(
        _ path: FilePath, _ name: FilePath.Component, in folder: Folder, _ matches: ([UInt8]) -> Bool
    ) throws(SystemError) -> Bool {
        guard isChain(path) else { return false }
        do throws(SystemError) {
            return MediaHashList.continues(try folder.read(name, limit: chainLimit), matches)
        } catch  where error.code == .fileTooLarge {
            return false
        }
    }
}
