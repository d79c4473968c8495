import InletCore
package import SystemPackage

extension FileCopy {
    /// Removes the temporary files that copies of `name` left in `directory` when their process died. Best effort; the
    /// caller knows that no such copy runs. Blocks.
    package static func removeLeftovers(of name: FilePath.Component, in directory: FilePath) {
        guard var stream = try? DirectoryStream(directory) else { return }
        let probe = TemporaryFile.pattern(for: name)
        // What an error leaves here takes room and is never read: the next copy of that name looks again.
        while let entry = try? stream.next() {
            let bytes = FilePath(root: nil, [entry.name]).bytes
            guard entry.kind == .regular, bytes.starts(with: probe.prefix), bytes.count == probe.length,
                bytes.suffix(4).elementsEqual(".tmp".utf8)
            else { continue }
            // As above.
            try? DurableFile.remove(directory.appending(entry.name))
        }
    }
}
