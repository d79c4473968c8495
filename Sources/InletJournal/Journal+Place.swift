internal import Foundation
package import SystemPackage

/// Whether the journal is where it belongs: a lost one is never taken for a first start.
extension Journal {
    /// Refuses to begin an empty journal where one was. Where nothing was, it says so beside `path` until the journal is made.
    /// Blocks.
    ///
    /// - Parameter traces: files that are made after a journal only, or after this call.
    package static func requireNotLost(_ path: FilePath, traces: [FilePath]) throws(JournalError) {
        let isEmpty: Bool
        do {
            isEmpty = try size(path.string) == 0 && size(path.string + "-wal") == 0
        } catch {
            throw .from(error, at: path)
        }
        let mark = beginning(of: path)
        if !isEmpty || isThere(mark) { return }
        try requireNoRestore(path)
        if let trace = traces.first(where: isThere) { throw .lost(path, trace: trace) }
        try mayBegin(path)
    }

    /// Says that an empty journal at `path` is wanted: there was none, or it was set aside.
    static func mayBegin(_ path: FilePath) throws(JournalError) {
        let mark = beginning(of: path)
        do {
            let options: FileDescriptor.OpenOptions = [.create, .noFollow, .closeOnExec]
            try FileDescriptor.open(mark, .writeOnly, options: options, permissions: .ownerReadWrite).close()
        } catch {
            throw .failed(mark, "cannot be made: \(error)")
        }
    }

    /// The journal is there: from now on its absence is a loss.
    package static func hasBegun(_ path: FilePath) throws(JournalError) {
        let mark = beginning(of: path)
        guard isThere(mark) else { return }
        do {
            try FileManager.default.removeItem(atPath: mark.string)
        } catch {
            throw .failed(mark, "cannot be removed: \(error.localizedDescription)")
        }
    }

    private static func beginning(of path: FilePath) -> FilePath { FilePath(path.string + ".beginning") }

    /// Which files the database and its log are.
    struct Place: Sendable, Equatable {
        private let files: [File]

        private struct File: Sendable, Equatable {
            var device: Int
            var inode: Int
        }

        init(of path: FilePath) throws {
            files = try ["", "-wal"].map { suffix in
                let found = try FileManager.default.attributesOfItem(atPath: path.string + suffix)
                guard let device = found[.systemNumber] as? Int, let inode = found[.systemFileNumber] as? Int else {
                    throw CocoaError(.fileReadUnknown)
                }
                return File(device: device, inode: inode)
            }
        }
    }

    /// Throws `displaced` when the open files are no longer those that have the names; another error where that cannot be
    /// seen. Blocks.
    package func requirePlace() throws(JournalError) {
        do {
            guard try Place(of: path) == place, try Self.size(path.string) > 0 else {
                throw JournalError.displaced(path)
            }
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile {
            throw .displaced(path)
        } catch {
            throw .from(error, at: path)
        }
    }
}
