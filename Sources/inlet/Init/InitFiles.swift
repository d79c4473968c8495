import InletCore
import InletLinux
import SystemPackage

/// Puts what `inlet init` made on the disk: whole, private, and over nothing that was not meant.
struct InitFiles {
    let configuration: FilePath
    /// Whether what is there may be replaced.
    let replaces: Bool

    var folder: FilePath { configuration.removingLastComponent() }

    /// The configuration, after the files of the secrets that were typed. When it throws, none of these is left in the way of
    /// the next try, unless it may replace them.
    func write(_ text: String, secrets: [(file: String, secret: Secret)]) throws(SystemError) {
        try DurableFile.makeDirectories(folder, mode: 0o755)
        let mode = mode
        var made: [FilePath] = []
        do throws(SystemError) {
            for (name, secret) in secrets {
                try put(Array((secret.reveal() + "\n").utf8), folder.appending(name), mode)
                made.append(folder.appending(name))
            }
            try put(Array(text.utf8), configuration, mode)
        } catch {
            // What was wrong first is what is told.
            if !replaces { for file in made { try? DurableFile.remove(file) } }
            throw error
        }
    }

    /// In a folder that hands its group on, as a package makes /etc/inlet, the agent's group reads what is in it.
    private var mode: UInt32 { handsGroupOn ? 0o640 : 0o600 }

    var handsGroupOn: Bool {
        // A folder that cannot be opened hands nothing on; writing there says why.
        let descriptor = try? FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec])
        // As above.
        let permissions = try? descriptor?.closeAfter { try descriptor?.stat().permissions }
        return permissions?.contains(.setGroupID) ?? false
    }

    private func put(_ bytes: [UInt8], _ path: FilePath, _ mode: UInt32) throws(SystemError) {
        if replaces { return try DurableFile.write(bytes, to: path, mode: mode) }
        let draft = FilePath(path.string + ".\(ProcessSetup.processID).tmp")
        try DurableFile.write(bytes, to: draft, mode: mode)
        do {
            // Fails for a name that is taken, also when it was taken just now.
            try DurableFile.rename(draft, to: path)
            try DurableFile.syncDirectory(folder)
        } catch {
            // What was wrong first is what is told.
            try? DurableFile.remove(draft)
            throw error
        }
    }
}
