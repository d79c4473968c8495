internal import InletCore
internal import InletLinux
internal import SystemPackage

/// A name in an open folder. Its checked file is the one that is moved or removed, even if folders above it are
/// replaced meanwhile.
struct OpenName: Sendable {
    let folder: Folder
    let name: FilePath.Component

    var path: FilePath { folder.path.appending(name) }

    /// Blocks.
    ///
    /// - Parameters:
    ///   - root: the watched folder: no symlink below it is followed. Elsewhere root's and the agent's own are
    ///     followed, which administrators have made. Empty for a file that a person named by its full path.
    ///   - open: the root, if it is open already.
    ///   - mode: missing folders are created with it; nil creates none.
    init(
        _ path: FilePath, below root: FilePath, in open: Folder? = nil, making mode: UInt32? = nil
    ) throws(SystemError) {
        guard let name = path.lastComponent else { throw SystemError(call: "open", path: path, code: .isDirectory) }
        let above = path.removingLastComponent()
        var below = above
        if root.isEmpty {
            folder = try Folder(following: above)
        } else if below.removePrefix(root) {
            let top = if let open { open } else { try Folder(root) }
            folder = if let mode { try top.folder(below, making: mode) } else { try top.folder(below) }
        } else {
            folder = if let mode { try Folder.making(above, mode: mode) } else { try Folder(above) }
        }
        self.name = name
    }

    private init(_ folder: Folder, _ name: FilePath.Component) { (self.folder, self.name) = (folder, name) }

    /// Another name in the same folder.
    func beside(_ name: FilePath.Component) -> OpenName { OpenName(folder, name) }

    /// nil where the folder is not there, or is behind a symlink.
    static func find(_ path: FilePath, below root: FilePath, in open: Folder? = nil) throws(SystemError) -> OpenName? {
        do throws(SystemError) {
            return try OpenName(path, below: root, in: open)
        } catch  where error.isMissing {
            return nil
        }
    }

    // All of these block.

    func look() throws(SystemError) -> FileLook { try folder.look(name) }
    func source() throws(SystemError) -> SourceFile { try SourceFile(opening: name, in: folder) }
    /// Its present writers. If it cannot be opened just now (no descriptor, a silent disk) this throws: a file with
    /// unknown writers would be held for long. A file that the agent may not read has unknown writers.
    func writer() throws(SystemError) -> LeaseProbe {
        let probe = WriterProbe.look(at: name, in: folder).writer
        guard case .unknown = probe else { return probe }
        do throws(SystemError) {
            _ = try source()
        } catch  where error.code == .permissionDenied || error.code == .notPermitted {
            return probe
        }
        return probe
    }

    /// Never overwrites; durable after `synchronize` of both folders.
    func rename(to other: OpenName) throws(SystemError) { try folder.rename(name, to: other.folder, other.name) }

    func remove() throws(SystemError) { try folder.remove(name) }

    func removeIfThere() throws(SystemError) {
        do throws(SystemError) { try remove() } catch  where error.isMissing {}
    }

    /// Renames to `wanted`, or to its first free numbered name. - Returns: the new name.
    func renameNumbered(to wanted: OpenName) throws(SystemError) -> OpenName {
        var number = 1
        while true {
            let target = wanted.numbered(number)
            do throws(SystemError) {
                try rename(to: target)
                return target
            } catch  where error.isTaken {
                number += 1
            }
        }
    }

    /// As `FinishFolders.numbered`.
    func numbered(_ number: Int) -> OpenName {
        number > 1 ? beside(FinishFolders.numbered(name, number, limit: folder.longestName)) : self
    }

    /// The name, or a shorter one if the folder's file system cannot have it.
    func shortened() throws(SystemError) -> OpenName {
        try folder.canHold(name) ? self : beside(name.fitting(limit: folder.longestName))
    }
}

extension OpenName {
    /// Copies a source to another file system: the source is removed only after the copy was compared with it.
    ///
    /// - Parameters:
    ///   - identity: the file as it was judged; its ctime has not changed since.
    ///   - copy: the name of the incomplete copy, in the folder of `target`. The caller has journaled it: searching for
    ///     the remains of a process that died would take longer with every file in an archive.
    /// - Throws: also if `target` was taken meanwhile; the source is at its place.
    func copy(_ identity: FileIdentity, to target: OpenName, by copy: OpenName) throws {
        let source = try source()
        _ = try FileCopy.copy(
            source, toTemporaryIn: target.folder, name: target.name, as: copy.name, isCancelled: { Task.isCancelled },
            progress: { _ in })
        do {
            guard try copy.holds(source), source.opened == identity,
                try source.identity() == source.opened
            else {
                throw SystemError(call: "copy", path: path, target: target.path, code: .ioError)
            }
            try copy.rename(to: target)
        } catch {
            // The intent has the name of its remains, which the next try removes.
            try? copy.remove()
            throw error
        }
        try target.folder.synchronize()
    }

    /// Whether it is a complete copy of `file`, made before the process died, or a second name of it, where a rename is
    /// a link and an unlink.
    func isFinishedCopy(of file: OpenName) throws -> Bool {
        guard let copy = try look().identity, let source = try file.look().identity else { return false }
        if copy.isFile(source) { return true }
        guard copy.isKnown(as: source), copy.device != source.device else { return false }
        return try holds(try file.source())
    }

    /// Compares the source with the copy on the disk. An unreadable source does not count as different.
    private func holds(_ source: SourceFile) throws -> Bool {
        var reader = try UncachedReader.open(name, in: folder)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var (offset, isSame) = (Int64(0), Result<Bool, SystemError>.success(true))
        while try reader.next({ chunk in
            guard case .success(true) = isSame else { return }
            isSame = Result { () throws(SystemError) in try source.holds(chunk, at: offset, buffer) }
            offset += Int64(chunk.count)
        }) {
            if Task.isCancelled { throw CancellationError() }
        }
        return try isSame.get() && offset == source.opened.size
    }
}

extension SourceFile {
    /// Whether these bytes are at `offset`, read into `buffer`.
    fileprivate func holds(
        _ chunk: UnsafeRawBufferPointer, at offset: Int64, _ buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Bool {
        var (rest, offset) = (chunk[...], offset)
        while !rest.isEmpty {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, rest.count)])
            let count = try read(into: room, at: offset)
            guard count > 0, rest.prefix(count).elementsEqual(room[..<count]) else { return false }
            rest = rest.dropFirst(count)
            offset += Int64(count)
        }
        return true
    }
}

extension SystemError {
    var isCrossDevice: Bool { code == .improperLink }
}
