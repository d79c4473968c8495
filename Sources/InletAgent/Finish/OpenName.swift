internal import InletCore
internal import InletLinux
internal import SystemPackage

/// A name in an open folder. What is looked at there is what is then moved or removed, whatever is put in the place of the
/// folders above it meanwhile.
struct OpenName: Sendable {
    let folder: Folder
    let name: FilePath.Component

    var path: FilePath { folder.path.appending(name) }

    /// Blocks.
    ///
    /// - Parameters:
    ///   - root: the watched folder: below it no symlink is followed. Elsewhere root's and our own are, which administrators
    ///     have made. Empty for a file that a person named with all of its path.
    ///   - open: the same, where it is open already.
    ///   - mode: missing folders are made with it; nil = none is.
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
    /// Who may write to it. What cannot be opened just now (no descriptor, a disk that does not answer) throws: it says nothing
    /// of writers, and a file whose writers are unknown is held for long. Who may not read it never learns more.
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

    /// Renames to `wanted`, or to the first of its numbered names that is free. - Returns: the name it got.
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

    /// The name, or a shorter one where the folder's file system cannot have it.
    func shortened() throws(SystemError) -> OpenName {
        try folder.canHold(name) ? self : beside(name.fitting(limit: folder.longestName))
    }
}

extension OpenName {
    /// Copies a source to another file system: the copy is compared with what was read, and only then does the source go.
    ///
    /// - Parameters:
    ///   - identity: what it was when it was judged; nothing has changed its ctime since.
    ///   - copy: the name that its copy has until it is whole, in the folder of `target`. The caller has journaled it: to look
    ///     for what a process left that died would take longer with every file in an archive.
    /// - Throws: also where `target` was taken meanwhile; the source is where it was.
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
            // What is left of it has its name in the intent, and goes at the next try.
            try? copy.remove()
            throw error
        }
        try target.folder.synchronize()
    }

    /// Whether it is a whole copy of `file`, made before the process died, or a second name of it, where a rename is a link and an
    /// unlink.
    func isFinishedCopy(of file: OpenName) throws -> Bool {
        guard let copy = try look().identity, let source = try file.look().identity else { return false }
        if copy.isFile(source) { return true }
        guard copy.isKnown(as: source), copy.device != source.device else { return false }
        return try holds(try file.source())
    }

    /// Compares the source with the copy as the disk holds it. A source that cannot be read is not another content.
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
    /// Whether these bytes stand at `offset`, which are read into `buffer`.
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
