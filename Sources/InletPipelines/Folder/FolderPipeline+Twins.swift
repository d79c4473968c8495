internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Names that are two for us and one for the folder: exFAT, FAT, NTFS and SMB do not tell `IMG.JPG` from `img.jpg`, HFS+ not one
/// normal form from another.
extension FolderPipeline {
    /// More files of one spelling are no collection of cards.
    private static let mostTwins = 1000

    /// Delivers under the order's key; where the folder shows another file under that, whose name is spelled otherwise, under
    /// `key_2`, `key_3`…, which the proof says. Every attempt goes through the same ones.
    func copyBesideTwins(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> Proof {
        var number = 1
        while true {
            let key = number == 1 ? order.key : KeyTemplate.disambiguated(order.key, number: number)
            do {
                return try await copyIn(source, order, attempt, key: key)
            } catch {
                let target = try place(key, order).target
                guard error.code == .destinationExists, number < Self.mostTwins,
                    try Self.isSpelledOtherwise(target)
                else { throw error }
            }
            number += 1
        }
    }

    /// Whether what is at `path` has another name there.
    static func isSpelledOtherwise(_ path: FilePath) throws(DeliveryError) -> Bool {
        do throws(SystemError) {
            guard let name = path.lastComponent else { return false }
            let folder = try Folder(path.removingLastComponent())
            var names = try folder.list()
            while let entry = try names.next() {
                if entry.name == name { return false }
            }
            return try folder.look(name) != .missing
        } catch {
            throw .unwritable(error)
        }
    }
}
