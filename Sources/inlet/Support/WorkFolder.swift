import Foundation
import InletCore
import InletLinux
import SystemPackage

/// A folder of its own for the run of a program; removed at the end.
struct WorkFolder: ~Copyable {
    /// The system's folder for temporary files.
    let base: FilePath
    let name: FilePath

    var path: FilePath { base.pushing(name) }

    init() throws(SystemError) {
        base = FilePath(FileManager.default.temporaryDirectory.path).realPath ?? "/tmp"
        name = FilePath("inlet-" + String(UInt64.random(in: .min ... .max), radix: 36))
        try DurableFile.makeDirectories(path, mode: 0o700)
    }

    deinit {
        // The system removes leftovers.
        try? FileManager.default.removeItem(atPath: path.string)
    }

    /// The environment of a program that keeps everything in here.
    var environment: [(name: String, value: [UInt8])] {
        [
            ("PATH", Array(ProgramFinder.path.utf8)), ("HOME", path.bytes), ("TMPDIR", path.bytes),
            (ChildVariable.language.rawValue, Array("C.UTF-8".utf8)),
        ]
    }
}
