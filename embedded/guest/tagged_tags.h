/* Event tags of tagged.names, written by `kerntune tags --header`: change that file, not this one. */
#ifndef KT_TAG_NAMES_H
#define KT_TAG_NAMES_H

#define KT_TAG_request 500
#define KT_TAG_checksum 502
#define KT_TAG_duplicate 504
#define KT_TAG_fibonacci 506
#define KT_TAG_resend 508

#ifdef KT_TAG_SCOPE
KT_TAG_SCOPE(request)
KT_TAG_SCOPE(checksum)
KT_TAG_SCOPE(duplicate)
KT_TAG_SCOPE(fibonacci)
#endif

#endif
