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

    private static func place(of number: CInt) -> String { "/proc/self/fd/\(number)" }
}
