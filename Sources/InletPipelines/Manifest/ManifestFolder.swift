package import InletCore
package import InletLinux
package import SystemPackage

/// Puts checksum lists into a folder. Nothing that somebody else wrote is replaced, and doing it again changes nothing.
/// Every call blocks.
package struct ManifestFolder: Sendable {
    package struct Written: Sendable, Equatable {
        package var path: FilePath
        /// Whether it was written now; false when an earlier try had done it.
        package var isNew: Bool
    }

    private let folder: FilePath

    /// - Parameter folder: it must be there.
    package init(_ folder: FilePath) { self.folder = folder }

    private static let listLimit = 256 << 20
    private static let mostNames = 100
    private static let chainName = "ascmhl_chain.xml"

    /// Writes a list that stands alone as `STEM.mhl`, or `STEM_2.mhl`… where that is another's. nil: nothing to list.
    package func writeList(
        _ content: ManifestContent, _ format: ManifestRule.Format, stem: String
    ) throws(SystemError) -> Written? {
        var number = 1
        while true {
            let name = number == 1 ? "\(stem).mhl" : "\(stem)_\(number).mhl"
            let document =
                format == .mhl
                ? ClassicMHL.document(content) : MediaHashList.document(content, .list(name: name))
            guard let document else { return nil }
            do throws(SystemError) {
                return try publish(document, at: folder.appending(name))
            } catch {
                number += 1
                if !error.isTaken || number > Self.mostNames { throw error }
            }
        }
    }

    /// Adds a generation to the folder's history, or begins one.
    ///
    /// - Parameters:
    ///   - name: what the list is called after.
    ///   - mayAppend: whether the unit has ended before, so that a history may hold a list of that end.
    /// - Returns: nil where a list that stands alone must do: there is another's history, one that cannot be read, or one that
    ///   knows another content of one of the files; or there is nothing to list.
    package func writeGeneration(
        _ content: ManifestContent, name: String, mayAppend: Bool
    ) throws(SystemError) -> Written? {
        if content.entries.contains(where: { ManifestContent.isReserved($0.path) }) { return nil }
        let place = folder.appending("ascmhl")
        let ending = "_\(name)_\(content.stamp).mhl"
        var generations = try lists(in: place)
        let own = try earlierTry(content, generations, ending, in: place)
        if own != nil { generations.removeLast() }
        guard mayAppend || generations.isEmpty else { return nil }
        guard var history = try history(generations, in: place), !history.contradicts(content),
            generations.isEmpty || history.holdsList(of: content, name: name)
        else { return nil }
        let number = own?.number ?? (generations.last?.number ?? 0) + 1
        let file = place.appending(own?.name ?? Self.fourDigits(number) + ending)
        var written = Written(path: file, isNew: false)
        if own == nil {
            let kind = MediaHashList.Kind.generation(known: history.paths)
            guard let document = MediaHashList.document(content, kind) else { return nil }
            try DurableFile.makeDirectories(place, mode: 0o755)
            written = try publish(document, at: file)
            Failpoint.generationWritten.reached()
        }
        let listName = file.lastComponent?.string ?? ""
        history.link(number, listName, try DurableFile.read(file, limit: Self.listLimit))
        let chain = MediaHashList.chain(history.links)
        let chainFile = place.appending(Self.chainName)
        if (try? DurableFile.read(chainFile, limit: chain.count)) != chain {
            try DurableFile.write(chain, to: chainFile, mode: 0o644)
            written.isNew = true
        }
        return written
    }

    /// The last generation where it says what is to be said now: a try of ours that may not have come to the chain. A unit may
    /// end twice within the second that names have.
    private func earlierTry(
        _ content: ManifestContent, _ generations: [(number: Int, name: String)], _ ending: String, in place: FilePath
    ) throws(SystemError) -> (number: Int, name: String)? {
        guard let last = generations.last, last.name.hasSuffix(ending) else { return nil }
        var said = ManifestHistory()
        let bytes = try DurableFile.read(place.appending(last.name), limit: Self.listLimit)
        let isRead = (try? said.add(generation: bytes, called: last.name)) != nil
        let paths = Set(content.listed(.ascmhl).entries.map { Array($0.path.utf8) })
        return isRead && said.paths == paths && !said.contradicts(content) ? last : nil
    }

    /// Under its own name only when it is whole. `isTaken` when something else has the name.
    private func publish(_ document: [UInt8], at path: FilePath) throws(SystemError) -> Written {
        if case .missing = try FileLook.look(at: path) {
            let folder = path.removingLastComponent()
            let draft = folder.appending(".\(path.lastComponent?.string ?? "").tmp")
            // Of a try that was killed: verifiers would take it for a new file.
            if let name = draft.lastComponent { FileCopy.removeLeftovers(of: name, in: folder) }
            try DurableFile.write(document, to: draft, mode: 0o644)
            try DurableFile.rename(draft, to: path)
            try DurableFile.syncDirectory(folder)
            return Written(path: path, isNew: true)
        }
        guard (try? DurableFile.read(path, limit: document.count)) == document else {
            throw SystemError(call: "create", path: path, code: .fileExists)
        }
        return Written(path: path, isNew: false)
    }

    /// The generations in a history's folder, oldest first.
    private func lists(in place: FilePath) throws(SystemError) -> [(number: Int, name: String)] {
        var found: [(number: Int, name: String)] = []
        if case .missing = try FileLook.look(at: place) { return [] }
        var stream = try DirectoryStream(place)
        while let entry = try stream.next() {
            let name = entry.name.string
            if let number = ManifestHistory.number(of: name) { found.append((number, name)) }
        }
        return found.sorted { $0.number < $1.number }
    }

    /// nil for what cannot be read as one.
    private func history(
        _ generations: [(number: Int, name: String)], in place: FilePath
    ) throws(SystemError) -> ManifestHistory? {
        var history = ManifestHistory()
        let chain = place.appending(Self.chainName)
        if try FileLook.look(at: chain) != .missing {
            let bytes = try DurableFile.read(chain, limit: Self.listLimit)
            guard (try? history.add(chain: bytes)) != nil else { return nil }
        }
        for (number, name) in generations {
            let bytes = try DurableFile.read(place.appending(name), limit: Self.listLimit)
            guard (try? history.add(generation: bytes, called: name)) != nil else { return nil }
            history.link(number, name, bytes)
        }
        return history
    }

    private static func fourDigits(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
