import InletCore
package import SystemPackage

extension DurableFile {
    /// Puts `bytes` at `path`, where nothing is yet: whole or not at all. Throws `isTaken` for a name that something has.
    /// Blocks.
    package static func create(_ bytes: [UInt8], at path: FilePath, mode: UInt32) throws(SystemError) {
        guard let name = path.lastComponent else {
            throw SystemError(call: "create", path: path, code: .isDirectory)
        }
        if try !createUnnamed(bytes, at: path, mode) {
            let temporary = try TemporaryFile(in: parent(of: path), for: name)
            try write(bytes, mode, to: temporary.descriptor, temporary.path)
            try rename(temporary.path, to: path)
            temporary.keep()
        }
        try syncDirectory(parent(of: path))
    }

    /// - Returns: false where there are no files without a name.
    private static func createUnnamed(
        _ bytes: [UInt8], at path: FilePath, _ mode: UInt32
    ) throws(SystemError) -> Bool {
        guard let file = try UnnamedFile.make(in: parent(of: path)) else { return false }
        try write(bytes, mode, to: file.descriptor, path)
        try file.link(as: path)
        return true
    }
}
