import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Changes to the names in a folder. Every call blocks.
extension Folder {
    /// Gives a file another name on the same file system and never overwrites: as `DurableFile.rename`.
    package func rename(
        _ name: FilePath.Component, to folder: Folder, _ target: FilePath.Component
    ) throws(SystemError) {
        try at(name) { (from) throws(SystemError) in
            try folder.at(target) { (to) throws(SystemError) in try DurableFile.rename(from, to: to) }
        }
    }

    /// Removes a file (not a folder). Durable after `synchronize`.
    package func remove(_ name: FilePath.Component) throws(SystemError) {
        try at(name) { (path) throws(SystemError) in try DurableFile.remove(path) }
    }

    /// Writes a small file, as `DurableFile.write`.
    package func write(
        _ bytes: [UInt8], to name: FilePath.Component, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) {
        try at(name) { (path) throws(SystemError) in
            try DurableFile.write(bytes, to: path, mode: mode, asFolderOwner: asFolderOwner)
        }
    }

    /// Writes a small file where nothing is, as `DurableFile.create`.
    package func create(_ bytes: [UInt8], as name: FilePath.Component, mode: UInt32) throws(SystemError) {
        try at(name) { (path) throws(SystemError) in try DurableFile.create(bytes, at: path, mode: mode) }
    }

    /// The content of a small file, symlinks not followed. Throws `EFBIG` with `.tooLarge` above `limit` bytes.
    package func read(_ name: FilePath.Component, limit: Int) throws(SystemError) -> [UInt8] {
        let source = try SourceFile(opening: name, in: self)
        // Room for no more than there is.
        return try source.content(limit: source.opened.size > Int64(limit) ? limit : Int(source.opened.size))
    }

    /// `fsync(2)`, which makes the names in it durable, where the file system can.
    package func synchronize() throws(SystemError) {
        try itself { (path) throws(SystemError) in try DurableFile.syncDirectory(path) }
    }

    /// Whether names can be made and removed in it, as far as the kernel can tell beforehand.
    package func requireWritable() throws(SystemError) {
        try itself { (path) throws(SystemError) in try DurableFile.requireWritable(path) }
    }
}
