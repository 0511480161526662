"""The espeak-ng voices used for training, and those kept out of it for evaluation."""

TRAINING_ACCENTS = (
    "en-us",
    "en-gb",
    "en-gb-x-rp",
    "en-gb-x-gbclan",
    "en-gb-x-gbcwmd",
    "en-029",
    "en-us-nyc",
)
HELD_OUT_ACCENT = "en-gb-scotland"

# Robots, whispers and joke voices of espeak-ng are in neither list.
TRAINING_VARIANTS = (
    *("Alex", "Alicia", "Andrea", "Andy", "Annie", "Denis", "Gene", "Gene2"),
    *("Henrique", "Hugo", "Jacky", "Lee", "Marco", "Mario", "Mike", "Nguyen"),
    *("aunty", "belinda", "benjamin", "boris", "caleb", "david", "edward", "edward2", "ed"),
    *("grandma", "grandpa", "gustave", "iven", "iven2", "john", "kaukovalta", "linda", "marcelo"),
    *("max", "michel", "miguel", "norbert", "pablo", "paul", "pedro", "quincy", "rob", "robert"),
    *("sandro", "shelby", "steph", "steph2", "travis", "victor", "zac"),
    *("f1", "f2", "f4", "f5", "m1", "m2", "m4", "m5", "m6", "m8"),
)
HELD_OUT_VARIANTS = ("f3", "m3", "m7", "Michael", "anika", "steph3", "adam", "Tweaky", "iven3", "antonio")

# flite speaks with the recordings of people; its voices join in when it is installed.
TRAINING_FLITE_VOICES = ("kal16", "rms", "slt")
HELD_OUT_FLITE_VOICES = ("awb",)
