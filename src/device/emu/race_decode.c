/* --check, while decoding: what an access of global memory is to those of other threads. */
#include "device/emu/race.h"

#include "device/emu/decode.h"

static bool is_narrow(const struct mg_form *f)
{
    return mg_form_has(f, MG_MOD_cta);
}

static bool is_strong(const struct mg_form *f)
{
    static const enum mg_mod mods[] = {MG_MOD_volatile, MG_MOD_relaxed, MG_MOD_acquire, MG_MOD_release, MG_MOD_acq_rel,
                                       MG_MOD_mmio,     MG_MOD_cv,      MG_MOD_cg,      MG_MOD_wt};
    for (unsigned i = 0; i < MG_COUNT_OF(mods); i++)
        if (mg_form_has(f, mods[i])) return true;
    return false;
}

void dec_race_access(struct decoder *d, const struct mg_form *form, const struct emu_op *access, bool result)
{
    bool atomic = form->op_flags & MG_OPF_ATOMIC, strong = atomic || is_strong(form),
         shared = access->space == MG_SPACE_shared;
    if (access->space != MG_SPACE_global && access->space != MG_SPACE_generic &&
        !(shared && access->sub & EMU_CHECK_SYNC))
        return;
    if (access->flags & EMU_OF_CLUSTER || (form->op == MG_OP_ld && mg_form_has(form, MG_MOD_nc)) ||
        form->op == MG_OP_ldu)
        return;
    bool both = mg_form_has(form, MG_MOD_acq_rel);
    struct emu_op *op = dec_emit_check_of(d, EMU_OP_race_access, access);
    op->mode = (uint8_t)(!strong           ? EMU_RACE_WEAK
                         : is_narrow(form) ? EMU_RACE_CTA
                         : atomic          ? EMU_RACE_ATOMIC
                                           : EMU_RACE_STRONG);
    op->sub = (uint8_t)((access->sub & (EMU_CHECK_READ | EMU_CHECK_WRITE)) |
                        (both || mg_form_has(form, MG_MOD_acquire) ? EMU_RACE_ACQUIRE : 0) |
                        (both || mg_form_has(form, MG_MOD_release) ? EMU_RACE_RELEASE : 0) |
                        (is_narrow(form) ? EMU_RACE_NARROW : 0) | (result ? EMU_RACE_RESULT : 0) |
                        (access->sub & EMU_CHECK_SETS));
}

void dec_race_fence(struct decoder *d, const struct mg_form *form)
{
    if (!dec_checks(d) || mg_form_has(form, MG_MOD_proxy) || mg_form_has(form, MG_MOD_mbarrier_init)) return;
    struct emu_op *op = dec_emit_check(d, EMU_OP_race_fence);
    op->sub = is_narrow(form) ? EMU_RACE_NARROW : 0;
}
