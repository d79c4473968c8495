import CLinux
import Glibc
import SystemPackage

/// A new file that has no name yet (open(2), `O_TMPFILE`), 0600: when its process dies there is nothing left of it.
struct UnnamedFile: ~Copyable {
    let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// nil where the kernel or the file system of `directory` has no such files, or `/proc` is not there to name them by.
    static func make(in directory: FilePath) throws(SystemError) -> UnnamedFile? {
        do throws(SystemError) {
            let file = UnnamedFile(
                try Descriptor(opening: directory, inlet_o_tmpfile | O_RDWR, mode: 0o600, call: "create"))
            if access(place(of: file.descriptor.number), F_OK) != 0 { return nil }
            return file
        } catch {
            // Kernels before 3.11 take the flag for a folder that is opened for writing.
            let unknown: [Errno] = [.notSupported, .isDirectory, .invalidArgument]
            if unknown.contains(error.code) { return nil }
            throw error
        }
    }

    /// Gives it its first name. Throws `isTaken` where there is something of that name.
    func link(as path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("link", path) {
            path.withPlatformString {
                linkat(AT_FDCWD, Self.place(of: descriptor.number), AT_FDCWD, $0, AT_SYMLINK_FOLLOW)
            }
        }
    }

    /// Gives it the name `path`, over a file that is there.
    ///
    /// - Returns: false when another process that writes the same file took the name away on the way: this one can have none
    ///   any more.
    func place(at path: FilePath, in folder: FilePath, for name: FilePath.Component) throws(SystemError) -> Bool {
        let draft = folder.pushing(TemporaryFile.fixedName(for: name))
        do throws(SystemError) {
            try link(replacing: draft)
            try DurableFile.rename(draft, over: path)
            return true
        } catch {
            // What is left there is replaced by the next try; the error that counts is the one at hand.
            try? DurableFile.remove(draft)
            if error.isMissing { return false }
            throw error
        }
    }

    /// What is there was left by a process that died, or is another's, which will notice.
    private func link(replacing draft: FilePath) throws(SystemError) {
        var tries = 0
        while true {
            do throws(SystemError) {
                return try link(as: draft)
            } catch {
                tries += 1
                if !error.isTaken || tries == 100 { throw error }
                // The next try says what is wrong, if it stays.
                try? DurableFile.remove(draft)
            }
        }
    }

    private static func place(of number: CInt) -> String { "/proc/self/fd/\(number)" }
}
