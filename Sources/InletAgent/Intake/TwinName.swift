internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Files whose names people cannot tell apart: the same text in another Unicode normal form.
enum TwinName {
    /// What a person should know of a file beside which its twin is; nil for nearly all, which costs nothing for ASCII names.
    /// Blocks for a look at the folder otherwise.
    static func note(_ arrival: Arrival) -> String? {
        let spellings = FileName(arrival.path).otherSpellings
        if spellings.isEmpty { return nil }
        let folder = arrival.path.removingLastComponent()
        for spelling in spellings {
            // What cannot be looked at is told when its own turn comes.
            let twin = (try? FileLook.look(at: RootedPath(arrival.root, folder.pushing(FilePath(bytes: spelling)))))?
                .identity
            // A file system that folds normal forms shows one file under both.
            guard let twin, twin.inode != arrival.identity.inode || twin.device != arrival.identity.device else {
                continue
            }
            return "another file has the same name in another Unicode normal form; where both ask for one key, "
                + "which is made of NFC, the later one gets '_2'"
        }
        return nil
    }
}
